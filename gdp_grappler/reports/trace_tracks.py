"""Defines the tracks of a Chrome trace and their order.

All tracks are threads of one process, because Perfetto orders threads by number
but processes by size. Accelerators come first, with a track for each compute
slot that is used. CPUs follow, also by slots. Then come the links that carry
bytes, by sender and receiver, and last all messages.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph

Event = dict[str, Any]
# The first track has this number, too. Viewers call it the main thread.
PROCESS = 1


@dataclasses.dataclass(frozen=True)
class Tracks:
  """Numbers of tracks, which increase from top to bottom.

  Attributes:
    slots: Tracks by device and slot.
    links: Tracks by sender and receiver.
    messages: The track of messages, which have no bytes.
  """

  slots: dict[tuple[int, int], int]
  links: dict[tuple[int, int], int]
  messages: int


def tracks(graph: op_graph.OpGraph, schedule: schedule_lib.Schedule,
           placement: placement_lib.Placement) -> Tracks:
  """Returns the tracks of a schedule."""
  devices = placement.cluster.devices
  filled = {(device, 0) for device in range(len(devices))}
  filled.update(zip(schedule.devices.tolist(), schedule.slots.tolist()))
  filled.update(
      zip(schedule.work_devices.tolist(), schedule.work_slots.tolist()))
  slots = sorted(filled, key=lambda slot:
                 (devices[slot[0]].type == 'CPU', slot))
  sent = np.flatnonzero(sizes(graph, schedule))
  links = sorted(
      set(
          zip(schedule.transfer_sources[sent].tolist(),
              schedule.transfer_targets[sent].tolist())))
  return Tracks(
      {slot: PROCESS + i for i, slot in enumerate(slots)},
      {link: PROCESS + len(slots) + i for i, link in enumerate(links)},
      PROCESS + len(slots) + len(links))


def names(shown: Tracks, schedule: schedule_lib.Schedule,
          placement: placement_lib.Placement, title: str) -> Iterator[Event]:
  """Yields events that name the process and its tracks."""
  labels = placement.cluster.device_labels
  yield _metadata('process_name', PROCESS, 'name', title)
  several = {device for device, slot in shown.slots if slot}
  for (device, slot), track in shown.slots.items():
    suffix = f' slot {slot}' if device in several else ''
    yield from _named(track, f'{labels[device]}{suffix}')
  for (source, target), track in shown.links.items():
    yield from _named(track, f'{labels[source]} -> {labels[target]}')
  if len(schedule.transfer_tensors):
    yield from _named(shown.messages, 'messages')


def microseconds(seconds: np.ndarray) -> list[float]:
  """Returns times in microseconds, rounded to the nanosecond.

  Viewers read times to the nanosecond, and Perfetto drops events of a track
  that overlap. Times that are equal stay equal when they are rounded.
  """
  return np.round(seconds * 1e6, 3).tolist()


def event(track: int, start: float, end: float, name: str, category: str,
          color: str, args: dict[str, Any]) -> Event:
  """Returns an event from one time to another, in microseconds."""
  return {
      'ph': 'X', 'name': name, 'cat': category, 'pid': PROCESS, 'tid': track,
      'ts': start, 'dur': round(end - start, 3), 'cname': color, 'args': args
  }


def sizes(graph: op_graph.OpGraph,
          schedule: schedule_lib.Schedule) -> np.ndarray:
  """Returns the bytes of each transfer, int64 [M]; 0 for messages."""
  tensors = schedule.transfer_tensors
  result = np.zeros(len(tensors), np.int64)
  result[tensors >= 0] = graph.tensor_bytes[tensors[tensors >= 0]]
  return result


def _named(track: int, name: str) -> Iterator[Event]:
  yield _metadata('thread_name', track, 'name', name)
  yield _metadata('thread_sort_index', track, 'sort_index', track)


def _metadata(kind: str, track: int, key: str, value: Any) -> Event:
  return {
      'ph': 'M', 'name': kind, 'pid': PROCESS, 'tid': track,
      'args': {key: value}
  }
