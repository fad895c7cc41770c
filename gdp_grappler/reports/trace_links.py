"""Transfers, messages and arrows of a Chrome trace."""

from __future__ import annotations

from typing import Iterator

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.reports import colors
from gdp_grappler.reports import trace_tracks

_MOST_NAMES = 10  # Names of ops in an event of overlapping messages.


def transfers(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
              shown: trace_tracks.Tracks) -> Iterator[trace_tracks.Event]:
  """Yields the transfers with bytes, each on the track of its link."""
  sizes = trace_tracks.sizes(graph, schedule)
  start = trace_tracks.microseconds(schedule.transfer_start_s)
  end = trace_tracks.microseconds(schedule.transfer_end_s)
  for index in np.flatnonzero(sizes).tolist():
    yield trace_tracks.event(shown.links[_link(schedule, index)], start[index],
                             end[index],
                             graph.label(schedule.transfer_ops[index]),
                             'transfer', colors.TRACE_TRANSFER,
                             {'bytes': int(sizes[index])})


def messages(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
             shown: trace_tracks.Tracks) -> Iterator[trace_tracks.Event]:
  """Yields messages, which have no bytes. Overlapping ones are one event."""
  empty = np.flatnonzero(trace_tracks.sizes(graph, schedule) == 0)
  if not len(empty):
    return
  order = empty[np.argsort(schedule.transfer_start_s[empty], kind='stable')]
  start = trace_tracks.microseconds(schedule.transfer_start_s[order])
  latest = np.maximum.accumulate(
      trace_tracks.microseconds(schedule.transfer_end_s[order])).tolist()
  first = [0] + [i for i in range(1, len(order)) if start[i] >= latest[i - 1]]
  for begin, stop in zip(first, [*first[1:], len(order)]):
    ops = schedule.transfer_ops[order[begin:stop]].tolist()
    args = {
        'count': len(ops), 'ops': [graph.label(op) for op in ops[:_MOST_NAMES]]
    }
    name = '1 message' if len(ops) == 1 else f'{len(ops)} messages'
    yield trace_tracks.event(shown.messages, start[begin], latest[stop - 1],
                             name, 'message', colors.TRACE_TRANSFER, args)


def arrows(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
           cluster: cluster_lib.Cluster,
           shown: trace_tracks.Tracks) -> Iterator[trace_tracks.Event]:
  """Yields arrows from producers over links to the first consumers."""
  consumers = _first_consumers(graph, schedule, cluster)
  devices, slots = schedule.devices.tolist(), schedule.slots.tolist()
  op_start = trace_tracks.microseconds(schedule.start_s)
  start = trace_tracks.microseconds(schedule.transfer_start_s)
  for index in np.flatnonzero(trace_tracks.sizes(graph, schedule)).tolist():
    source, target = _link(schedule, index)
    consumer = consumers.get((int(schedule.transfer_tensors[index]), target))
    if consumer is None:
      continue
    producer = int(schedule.transfer_ops[index])
    for phase, track, moment in (('s', shown.slots[devices[producer],
                                                   slots[producer]],
                                  op_start[producer]),
                                 ('t', shown.links[source,
                                                   target], start[index]),
                                 ('f', shown.slots[devices[consumer],
                                                   slots[consumer]],
                                  op_start[consumer])):
      yield {
          'ph': phase,
          'name': 'sent',
          'cat': 'sent',
          'id': index,
          'pid': trace_tracks.PROCESS,
          'tid': track,
          'ts': moment,
          # The arrow ends at the event that begins here, not at the next one.
          'bp': 'e'
      }


def _link(schedule: schedule_lib.Schedule, index: int) -> tuple[int, int]:
  return (int(schedule.transfer_sources[index]),
          int(schedule.transfer_targets[index]))


def _first_consumers(
    graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
    cluster: cluster_lib.Cluster) -> dict[tuple[int, int], int]:
  """Returns the first reader by tensor and the device that receives it."""
  edges = np.flatnonzero(graph.edge_tensors >= 0)
  # Entered from late to early, so that the earliest reader stays.
  edges = edges[np.argsort(-schedule.start_s[graph.edges[edges, 1]],
                           kind='stable')]
  _, places = op_details.tensor_places(graph, cluster, schedule.devices)
  return dict(
      zip(zip(graph.edge_tensors[edges].tolist(), places[edges].tolist()),
          graph.edges[edges, 1].tolist()))
