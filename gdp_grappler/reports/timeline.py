"""A simulated schedule as a Chrome trace, for Perfetto or chrome://tracing.

Format: "Trace Event Format", Google, 2016. One process per device with a row
for each slot of its compute unit that it fills and a counter for its memory,
workspace included; one process for the links, with a row per link that carries
something. What a device without copy engines does for a transfer is an event of
its own among its ops.
"""

from __future__ import annotations

import json
import os
from typing import Any, Iterator

import numpy as np

from gdp_grappler import files
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph


def write_chrome_trace(path: str | os.PathLike[str], graph: op_graph.OpGraph,
                       schedule: schedule_lib.Schedule,
                       placement: placement_lib.Placement) -> None:
  """Writes a schedule where trace viewers find it; all of it or nothing.

  Args:
    path: File to write.
    graph: What ran.
    schedule: `Simulator.schedule` of `graph` and `placement`.
    placement: Where it ran.

  Raises:
    ValueError: graph, schedule and placement do not belong together.
    GdpError: the file cannot be written.
  """
  files.write_atomically(path,
                         json.dumps(chrome_trace(graph, schedule, placement)))


def chrome_trace(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
                 placement: placement_lib.Placement) -> dict[str, Any]:
  """The trace as the object that `write_chrome_trace` writes.

  Raises:
    ValueError: graph, schedule and placement do not belong together.
  """
  if not graph.num_ops == len(schedule.start_s) == len(placement.devices):
    raise ValueError(
        f'The graph has {graph.num_ops} ops, the schedule '
        f'{len(schedule.start_s)}, the placement {len(placement.devices)}.')
  cluster = placement.cluster
  return {
      'traceEvents': [
          *_device_names(schedule, placement),
          *_ops(graph, schedule, placement), *_work(graph, schedule),
          *_memory(schedule, cluster), *_links(graph, schedule, cluster)
      ],
      'displayTimeUnit': 'ms',
      'otherData': {
          'simulated': True,
          'graph': graph.name,
          'cluster': cluster.name,
          'devices': list(cluster.device_names),
          'step_time_s': schedule.step_time_s,
          'ordered': placement.priorities is not None,
          'peak_bytes': schedule.peak_bytes.tolist(),
      },
  }


def _device_names(
    schedule: schedule_lib.Schedule,
    placement: placement_lib.Placement) -> Iterator[dict[str, Any]]:
  for pid, device in enumerate(placement.cluster.devices):
    rows = np.unique(
        np.concatenate([[0], schedule.slots[placement.devices == pid],
                        schedule.work_slots[schedule.work_devices == pid]
                       ])).tolist()
    yield _named('process_name', pid, f'{device.short_name} (simulated)')
    for row in rows:
      name = 'compute' if len(rows) == 1 else f'compute {row}'
      yield _named('thread_name', pid, name, row)
    yield {
        'ph': 'M', 'name': 'process_sort_index', 'pid': pid, 'tid': 0,
        'args': {'sort_index': pid}
    }


def _ops(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
         placement: placement_lib.Placement) -> Iterator[dict[str, Any]]:
  for op, (device, slot, start, end) in enumerate(
      zip(placement.devices.tolist(), schedule.slots.tolist(),
          _us(schedule.start_s), _us(schedule.end_s))):
    args = {
        'op_type': graph.op_types[op], 'flops': float(graph.flops[op]),
        'output_bytes': int(graph.output_bytes[op])
    }
    if graph.executions[op] != 1:
      args['executions'] = float(graph.executions[op])
    if placement.priorities is not None:
      # JSON has no infinity.
      args['priority'] = str(placement.priorities[op])
    yield {
        'ph': 'X', 'name': graph.names[op], 'cat': graph.op_types[op],
        'pid': device, 'tid': slot, 'ts': start, 'dur': end - start,
        'args': args
    }


def _work(graph: op_graph.OpGraph,
          schedule: schedule_lib.Schedule) -> Iterator[dict[str, Any]]:
  for transfer, device, slot, start, end in zip(
      schedule.work_transfers.tolist(), schedule.work_devices.tolist(),
      schedule.work_slots.tolist(), _us(schedule.work_start_s),
      _us(schedule.work_end_s)):
    sends = device == schedule.transfer_sources[transfer]
    name = graph.names[schedule.transfer_ops[transfer]]
    yield {
        'ph': 'X', 'name': f'{"send" if sends else "receive"} {name}',
        'cat': 'copy', 'pid': device, 'tid': slot, 'ts': start,
        'dur': end - start, 'args': {'transfer': transfer}
    }


def _memory(schedule: schedule_lib.Schedule,
            cluster: cluster_lib.Cluster) -> Iterator[dict[str, Any]]:
  """Counters of each pool, drawn at its first device."""
  pools = cluster.memory_pools.tolist()
  names = [
      ' + '.join(d.short_name for d, p in zip(cluster.devices, pools)
                 if p == pool) for pool in range(max(pools) + 1)
  ]
  for time, pool, live in zip(_us(schedule.memory_s),
                              schedule.memory_pools.tolist(),
                              schedule.memory_bytes.tolist()):
    yield {
        'ph': 'C', 'name': f'memory of {names[pool]}', 'pid': pools.index(pool),
        'tid': 0, 'ts': time, 'args': {'bytes': live}
    }


def _links(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
           cluster: cluster_lib.Cluster) -> Iterator[dict[str, Any]]:
  pid = cluster.num_devices
  rows: dict[tuple[int, int], int] = {}
  yield _named('process_name', pid, 'links (simulated)')
  for index, (tensor, op, source, target, start, end) in enumerate(
      zip(schedule.transfer_tensors.tolist(), schedule.transfer_ops.tolist(),
          schedule.transfer_sources.tolist(),
          schedule.transfer_targets.tolist(), _us(schedule.transfer_start_s),
          _us(schedule.transfer_end_s))):
    size = int(graph.tensor_bytes[tensor]) if tensor >= 0 else 0
    row = rows.setdefault((source, target), len(rows))
    event = {
        'name': graph.names[op], 'cat': 'transfer' if size else 'message',
        'pid': pid, 'tid': row, 'args': {'bytes': size}
    }
    if size:
      yield {**event, 'ph': 'X', 'ts': start, 'dur': end - start}
    else:
      # Messages of one link overlap, which complete events must not.
      yield {**event, 'ph': 'b', 'id': index, 'ts': start}
      yield {**event, 'ph': 'e', 'id': index, 'ts': end}
  for (source, target), row in rows.items():
    yield _named(
        'thread_name', pid, f'{cluster.devices[source].short_name} -> '
        f'{cluster.devices[target].short_name}', row)


def _named(kind: str, pid: int, name: str, tid: int = 0) -> dict[str, Any]:
  return {
      'ph': 'M', 'name': kind, 'pid': pid, 'tid': tid, 'args': {'name': name}
  }


def _us(seconds: np.ndarray) -> list[float]:
  return (seconds * 1e6).tolist()
