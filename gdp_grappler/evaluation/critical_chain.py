"""The critical chain: the events for which a simulated step waited.

The search begins at the op that ended last and goes back from effect to cause.
An op waits for the last of its inputs, or for its device to finish another op.
A transfer waits for the op that made the tensor, for the link, or for the
stream of a device. A gap between the end of the cause and the start of the
effect is launch, dispatch or latency.
"""

from __future__ import annotations

import bisect
import dataclasses
from typing import Iterator

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph

# Kinds of causes: what a part of the chain waited for.
INPUT, TRANSFER, DEVICE, LINK, NOTHING = ('input', 'transfer', 'device', 'link',
                                          'nothing')
# Events this close in time, as a share of the step, count as simultaneous.
_CLOSE = 1e-9


@dataclasses.dataclass(frozen=True)
class ChainPart:
  """An op or a transfer of the chain.

  Attributes:
    is_transfer: True for a transfer, False for an op.
    index: Index of the op in the graph, or of the transfer in the schedule.
    start_s: Start, in seconds since the start of the step.
    end_s: End, in seconds since the start of the step.
    waited_for: Kind of the cause, which is the previous part of the chain:
      `INPUT`, `TRANSFER`, `DEVICE`, `LINK` or `NOTHING`.
    gap_s: Seconds between the end of the cause and the start of this part.
  """

  is_transfer: bool
  index: int
  start_s: float
  end_s: float
  waited_for: str
  gap_s: float


def critical_chain(graph: op_graph.OpGraph, placement: placement_lib.Placement,
                   schedule: schedule_lib.Schedule) -> tuple[ChainPart, ...]:
  """The parts of the chain in order of time; () for a graph without ops.

  Args:
    graph: N ops.
    placement: Placement of these ops.
    schedule: Schedule of this placement.
  """
  if not graph.num_ops:
    return ()
  search = _Search(graph, placement, schedule)
  return tuple(search.backwards())[::-1]


# Whether the event is a transfer, and its index.
_Event = tuple[bool, int]
# End of the cause in seconds, its kind, and its event.
_Cause = tuple[float, str, _Event]


class _Search:
  """Walks back from the op that ended last."""

  def __init__(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement,
               schedule: schedule_lib.Schedule) -> None:
    self._schedule, self._devices = schedule, schedule.devices.tolist()
    made, read = op_details.tensor_places(graph, placement.cluster,
                                          schedule.devices)
    self._close_s = _CLOSE * max(schedule.step_time_s, 1e-12)
    self._seen: set[_Event] = set()
    by_consumer = np.argsort(graph.edges[:, 1], kind='stable')
    self._producers = graph.edges[by_consumer, 0].tolist()
    self._tensors = graph.edge_tensors[by_consumer].tolist()
    self._made, self._read = made[by_consumer].tolist(
    ), read[by_consumer].tolist()
    counts = np.bincount(graph.edges[:, 1], minlength=graph.num_ops)
    self._starts = np.concatenate([[0], np.cumsum(counts)]).tolist()
    self._arrival_s = schedule.transfer_end_s.copy()
    np.maximum.at(self._arrival_s, schedule.work_transfers, schedule.work_end_s)
    sent = zip(schedule.transfer_ops.tolist(),
               schedule.transfer_tensors.tolist(),
               schedule.transfer_targets.tolist())
    self._transfers = {key: index for index, key in enumerate(sent)}
    self._units = placement.cluster.compute_units.tolist()
    self._runs_ahead = [d.asynchronous for d in placement.cluster.devices]
    self._on_units = self._by_end(
        placement.cluster.compute_units[schedule.devices], schedule.end_s)
    self._leaving = self._by_end(schedule.transfer_sources,
                                 schedule.transfer_end_s)
    self._coming = self._by_end(schedule.transfer_targets,
                                schedule.transfer_end_s)

  def backwards(self) -> Iterator[ChainPart]:
    """The parts of the chain, from the last one to the first one."""
    event: _Event | None = False, int(self._schedule.end_s.argmax())
    while event is not None:
      self._seen.add(event)
      is_transfer, index = event
      start_s, end_s = self._times(event)
      causes = (self._of_transfer(index, start_s)
                if is_transfer else self._of_op(index, start_s))
      cause = self._chosen(causes, start_s)
      if cause is None:
        yield ChainPart(is_transfer, index, start_s, end_s, NOTHING, start_s)
        return
      yield ChainPart(is_transfer, index, start_s, end_s, cause[1],
                      max(start_s - cause[0], 0.))
      event = cause[2]

  def _times(self, event: _Event) -> tuple[float, float]:
    schedule, (is_transfer, index) = self._schedule, event
    starts, ends = ((schedule.transfer_start_s,
                     schedule.transfer_end_s) if is_transfer else
                    (schedule.start_s, schedule.end_s))
    return float(starts[index]), float(ends[index])

  def _chosen(self, causes: Iterator[_Cause], start_s: float) -> _Cause | None:
    """The cause that ended last; of simultaneous causes the first listed."""
    best: _Cause | None = None
    for cause in causes:
      if cause[2] in self._seen or cause[0] > start_s + self._close_s:
        continue
      if best is None or cause[0] > best[0] + self._close_s:
        best = cause
    return best

  def _of_op(self, op: int, start_s: float) -> Iterator[_Cause]:
    device, schedule = self._devices[op], self._schedule
    inputs: list[_Cause] = []
    for edge in range(self._starts[op], self._starts[op + 1]):
      producer, tensor = self._producers[edge], self._tensors[edge]
      place = self._read[edge]
      if self._made[edge] == place:
        # The thread of a GPU hands what is on its host to other devices.
        source = self._devices[producer]
        ahead = self._runs_ahead[source] and source != device
        ends_s = schedule.dispatched_s if ahead else schedule.end_s
        inputs.append((float(ends_s[producer]), INPUT, (False, producer)))
        continue
      transfer = self._transfers.get((producer, tensor, place))
      if transfer is not None:
        inputs.append(
            (float(self._arrival_s[transfer]), TRANSFER, (True, transfer)))
    yield from inputs
    before = self._last(self._on_units, self._units[device], start_s, False)
    # If a slot was free before the start, an op with inputs waited for these.
    if before is not None and (not inputs or
                               before[0] >= start_s - self._close_s):
      yield before[0], DEVICE, before[1]

  def _of_transfer(self, index: int, start_s: float) -> Iterator[_Cause]:
    schedule = self._schedule
    op = int(schedule.transfer_ops[index])
    yield float(schedule.end_s[op]), INPUT, (False, op)
    source = int(schedule.transfer_sources[index])
    target = int(schedule.transfer_targets[index])
    for what, label in ((self._leaving, source), (self._coming, target)):
      before = self._last(what, label, start_s, True)
      if before is not None and before[0] >= start_s - self._close_s:
        yield before[0], LINK, before[1]
    for device in (target, source):
      before = self._last(self._on_units, self._units[device], start_s, False)
      if before is not None and before[0] >= start_s - self._close_s:
        yield before[0], DEVICE, before[1]

  def _by_end(self, labels: np.ndarray,
              ends: np.ndarray) -> dict[int, tuple[list[float], list[int]]]:
    """For each label, sorted end times and the indices of the events."""
    order = np.argsort(ends, kind='stable')
    labels = labels[order]
    return {
        int(label): (ends[order[labels == label]].tolist(),
                     order[labels == label].tolist()
                    ) for label in np.unique(labels)
    }

  def _last(self, sorted_by_end: dict[int, tuple[list[float],
                                                 list[int]]], label: int,
            start_s: float, is_transfer: bool) -> tuple[float, _Event] | None:
    """The last event to end before `start_s` that is not in the chain yet."""
    ends, which = sorted_by_end.get(label, ([], []))
    at = bisect.bisect_right(ends, start_s + self._close_s) - 1
    while at >= 0 and (is_transfer, which[at]) in self._seen:
      at -= 1
    return None if at < 0 else (ends[at], (is_transfer, which[at]))
