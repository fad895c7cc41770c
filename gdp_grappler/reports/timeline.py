"""Writes a simulated schedule as a Chrome trace, for Perfetto and others.

Format: "Trace Event Format", Google, 2016. `trace_tracks` names the tracks.
Each memory has a counter, which includes the workspace of ops. If a device has
no copy engines, its work for a transfer is an event among its ops. Colours are
those of the op families in chrome://tracing and TensorBoard. Perfetto chooses
its own colours.
"""

from __future__ import annotations

import json
import os
from typing import Any, Iterator

from gdp_grappler import files
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import colors
from gdp_grappler.reports import device_work
from gdp_grappler.reports import trace_links
from gdp_grappler.reports import trace_tracks


def write_chrome_trace(path: str | os.PathLike[str], graph: op_graph.OpGraph,
                       schedule: schedule_lib.Schedule,
                       placement: placement_lib.Placement) -> None:
  """Writes a schedule to a file. An error leaves no partial file.

  Args:
    path: File to write.
    graph: The graph.
    schedule: `Simulator.schedule` of `graph` and `placement`.
    placement: Placement of the graph.

  Raises:
    ValueError: graph, schedule and placement do not belong together.
    GdpError: the file cannot be written.
  """
  files.write_atomically(path,
                         json.dumps(chrome_trace(graph, schedule, placement)))


def chrome_trace(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
                 placement: placement_lib.Placement) -> dict[str, Any]:
  """Returns the trace that `write_chrome_trace` writes.

  Raises:
    ValueError: graph, schedule and placement do not belong together.
  """
  if not graph.num_ops == len(schedule.start_s) == len(placement.devices):
    raise ValueError(
        f'The graph has {graph.num_ops} ops, the schedule '
        f'{len(schedule.start_s)}, the placement {len(placement.devices)}.')
  cluster = placement.cluster
  shown = trace_tracks.tracks(graph, schedule, placement)
  return {
      'traceEvents': [
          *trace_tracks.names(shown, schedule, placement,
                              f'{graph.name} on {cluster.name} (simulated)'),
          *_ops(graph, schedule, placement, shown),
          *_work(graph, schedule, shown), *_memory(schedule, cluster),
          *trace_links.transfers(graph, schedule, shown),
          *trace_links.messages(graph, schedule, shown),
          *trace_links.arrows(graph, schedule, cluster, shown)
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


def _ops(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
         placement: placement_lib.Placement,
         shown: trace_tracks.Tracks) -> Iterator[trace_tracks.Event]:
  trace_colors = {t: colors.of_op_in_trace(t) for t in set(graph.op_types)}
  for op, (device, slot, start, end) in enumerate(
      zip(schedule.devices.tolist(), schedule.slots.tolist(),
          trace_tracks.microseconds(schedule.start_s),
          trace_tracks.microseconds(schedule.end_s))):
    args = {
        'op_type': graph.op_types[op], 'flops': float(graph.flops[op]),
        'output_bytes': int(graph.output_bytes[op])
    }
    if graph.executions[op] != 1:
      args['executions'] = float(graph.executions[op])
    if placement.priorities is not None:
      # As text, because JSON has no infinity.
      args['priority'] = str(placement.priorities[op])
    yield trace_tracks.event(shown.slots[device, slot], start, end,
                             graph.label(op), graph.op_types[op],
                             trace_colors[graph.op_types[op]], args)


def _work(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
          shown: trace_tracks.Tracks) -> Iterator[trace_tracks.Event]:
  for transfer, device, slot, start, end in zip(
      schedule.work_transfers.tolist(), schedule.work_devices.tolist(),
      schedule.work_slots.tolist(),
      trace_tracks.microseconds(schedule.work_start_s),
      trace_tracks.microseconds(schedule.work_end_s)):
    sends = device == schedule.transfer_sources[transfer]
    name = graph.label(schedule.transfer_ops[transfer])
    yield trace_tracks.event(shown.slots[device, slot], start, end,
                             f'{"send" if sends else "receive"} {name}', 'copy',
                             colors.TRACE_TRANSFER, {'transfer': transfer})


def _memory(schedule: schedule_lib.Schedule,
            cluster: cluster_lib.Cluster) -> Iterator[trace_tracks.Event]:
  """Yields the events of a counter for each pool."""
  names = device_work.pool_names(cluster)
  for time, pool, live in zip(trace_tracks.microseconds(schedule.memory_s),
                              schedule.memory_pools.tolist(),
                              schedule.memory_bytes.tolist()):
    yield {
        'ph': 'C', 'name': f'memory of {names[pool]}',
        'pid': trace_tracks.PROCESS, 'ts': time, 'args': {'bytes': live}
    }
