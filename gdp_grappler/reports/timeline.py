"""A simulated schedule as a Chrome trace, for Perfetto or chrome://tracing.

Format: "Trace Event Format", Google, 2016. One process per device with a row
for its ops and a counter for its memory; one process for the links, with a row
per link that carries something.
"""

from __future__ import annotations

import json
import os
from typing import Iterator

import numpy as np

from gdp_grappler import files
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import schedule as schedule_lib
from gdp_grappler.graph import op_graph


def write_chrome_trace(path: str | os.PathLike, graph: op_graph.OpGraph,
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
  files.write_atomically(
      path, json.dumps(chrome_trace(graph, schedule, placement)))


def chrome_trace(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
                 placement: placement_lib.Placement) -> dict:
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
          *_device_names(cluster), *_ops(graph, schedule, placement),
          *_memory(schedule, cluster), *_links(graph, schedule, cluster)],
      'displayTimeUnit': 'ms',
      'otherData': {
          'simulated': True,
          'graph': graph.name,
          'cluster': cluster.name,
          'devices': list(cluster.device_names),
          'step_time_s': schedule.step_time_s,
          'peak_bytes': schedule.peak_bytes.tolist(),
      },
  }


def _device_names(cluster) -> Iterator[dict]:
  for pid, device in enumerate(cluster.devices):
    yield _named('process_name', pid, f'{device.short_name} (simulated)')
    yield _named('thread_name', pid, 'compute')
    yield {'ph': 'M', 'name': 'process_sort_index', 'pid': pid, 'tid': 0,
           'args': {'sort_index': pid}}


def _ops(graph, schedule, placement) -> Iterator[dict]:
  for op, (device, start, end) in enumerate(zip(
      placement.devices.tolist(), _us(schedule.start_s),
      _us(schedule.end_s))):
    yield {'ph': 'X', 'name': graph.names[op], 'cat': graph.op_types[op],
           'pid': device, 'tid': 0, 'ts': start, 'dur': end - start,
           'args': {'op_type': graph.op_types[op],
                    'flops': float(graph.flops[op]),
                    'output_bytes': int(graph.output_bytes[op])}}


def _memory(schedule, cluster) -> Iterator[dict]:
  """Counters of each pool, drawn at its first device."""
  pools = cluster.memory_pools.tolist()
  names = [' + '.join(d.short_name for d, p in zip(cluster.devices, pools)
                      if p == pool) for pool in range(max(pools) + 1)]
  for time, pool, live in zip(_us(schedule.memory_s),
                              schedule.memory_pools.tolist(),
                              schedule.memory_bytes.tolist()):
    yield {'ph': 'C', 'name': f'memory of {names[pool]}',
           'pid': pools.index(pool), 'tid': 0, 'ts': time,
           'args': {'bytes': live}}


def _links(graph, schedule, cluster) -> Iterator[dict]:
  pid, rows = cluster.num_devices, {}
  yield _named('process_name', pid, 'links (simulated)')
  for index, (tensor, op, source, target, start, end) in enumerate(zip(
      schedule.transfer_tensors.tolist(), schedule.transfer_ops.tolist(),
      schedule.transfer_sources.tolist(), schedule.transfer_targets.tolist(),
      _us(schedule.transfer_start_s), _us(schedule.transfer_end_s))):
    size = int(graph.tensor_bytes[tensor]) if tensor >= 0 else 0
    row = rows.setdefault((source, target), len(rows))
    event = {'name': graph.names[op], 'cat': 'transfer' if size else 'message',
             'pid': pid, 'tid': row, 'args': {'bytes': size}}
    if size:
      yield {**event, 'ph': 'X', 'ts': start, 'dur': end - start}
    else:
      # Messages of one link overlap, which complete events must not.
      yield {**event, 'ph': 'b', 'id': index, 'ts': start}
      yield {**event, 'ph': 'e', 'id': index, 'ts': end}
  for (source, target), row in rows.items():
    yield _named('thread_name', pid,
                 f'{cluster.devices[source].short_name} -> '
                 f'{cluster.devices[target].short_name}', row)


def _named(kind, pid, name, tid=0) -> dict:
  return {'ph': 'M', 'name': kind, 'pid': pid, 'tid': tid,
          'args': {'name': name}}


def _us(seconds: np.ndarray) -> list[float]:
  return (seconds * 1e6).tolist()
