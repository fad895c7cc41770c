"""The search of control edges that make TensorFlow keep an order.

1. Simulate the step as TensorFlow runs it, and with the wanted priorities.
2. Where a device starts two consecutive heavy ops in the wrong order, add an
   edge. Simulate first in, first out with the edges; later ops may now be in
   the wrong order. Repeat until the wanted gain or the wanted order is reached.
3. On asynchronous devices the right order is not enough: an op may be
   dispatched so early that copies wait behind it. If there are such devices,
   also try *chains*: on each device an edge from each heavy op to the next one.
   Then no op is dispatched before an earlier op that waits for another
   device. If an op depends on the previous op anyway, the edge still delays the
   op until the outputs of the previous op are sent.
4. If a copy still waits for the stream of its receiver, add a *throttle*: an
   edge from an op of the sender, the producer of the copy or an op shortly
   before it, to an op that the receiver starts a little later. This edge
   crosses devices and is therefore a message.
5. Remove halves of the edges, then quarters, ..., as long as the gain stays.

The edges of one set all point forward in the time of one simulated step, as the
edges of the graph do, so no cycle can arise.
"""

from __future__ import annotations

import dataclasses
from typing import Iterator

import numpy as np

from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.simulation import schedule as schedule_lib

# Throttles to try, two numbers each. A message from the sender delays an op of
# the receiver. A message that starts too late would wait behind the copy. So
# the message starts some ops before the op that makes the result. The first
# number is the number of these ops. The second number is the least time from
# the start of the message to the start of the delayed op, in units of the
# receiver's `hop_s`. The message itself takes one unit.
_THROTTLES = ((0, 1.5), (2, 1.5), (8, 1.5), (0, 10.), (2, 10.))
_LEAST_GAIN = 1e-3  # Share of the step that throttles have to save.
# Edges join only the heaviest ops of a device. The weight of an op is its
# seconds plus the seconds of its transfers. A share is the weight of the
# heaviest ops over the weight of all ops of the device. The search tries the
# shares in turn until one brings enough of the gain (`_KEPT_GAIN`).
_HEAVY_SHARES = .9, .99, 1.
# The search ends when edges bring this share of the gain of the order. The gain
# of the order is what TensorFlow would gain if it had priorities.
_KEPT_GAIN = .95


@dataclasses.dataclass(frozen=True, eq=False)
class EdgeSet:
  """Control edges and the simulated step with these edges.

  Attributes:
    edges: int32 [C, 2].
    schedule: Schedule of the step with the edges.
  """

  edges: np.ndarray
  schedule: schedule_lib.Schedule

  @property
  def step_s(self) -> float:
    """Seconds of the step with the edges."""
    return self.schedule.step_time_s


class EdgeSearch:
  """The search of edges for one order of one placement."""

  def __init__(self, pricer: edge_pricer.EdgePricer, plain: EdgeSet,
               wanted: schedule_lib.Schedule) -> None:
    """Prepares the search.

    Args:
      pricer: Pricer of the placement.
      plain: The step without edges.
      wanted: The step in the wanted order.
    """
    self._pricer, self._plain, self._wanted = pricer, plain, wanted
    self._may = pricer.may & (wanted.end_s > wanted.start_s)
    self._target_s = plain.step_s - _KEPT_GAIN * (plain.step_s
                                                  - wanted.step_time_s)
    self._streams = any(
        d.asynchronous for d in pricer.placement.cluster.devices)

  def best(self) -> EdgeSet:
    """The best edges of steps 2 and 3 of the module's docstring."""
    best = self._plain
    for share in _HEAVY_SHARES:
      pairs = self._new(
          _pairs(self._heavy(share), self._pricer.placement.devices,
                 self._wanted), self._plain.edges)
      for found in self._candidates(pairs):
        best = min(best, found, key=lambda f: f.step_s)
      if best.step_s <= self._target_s or self._pricer.left <= 0:
        break
    return best

  def _candidates(self, pairs: np.ndarray) -> Iterator[EdgeSet]:
    if self._streams and self._pricer.left > 0:
      yield EdgeSet(pairs, self._pricer.schedule(pairs))
    yield self._joining(pairs)

  def _joining(self, pairs: np.ndarray) -> EdgeSet:
    """The best edges of the rounds that join ops in the wrong order."""
    now = best = self._plain
    while self._pricer.left > 0 and best.step_s > self._target_s:
      first, then = pairs.T
      start_s = now.schedule.start_s
      wrong = pairs[start_s[then] < start_s[first]]
      if not wrong.size:
        break
      edges = np.concatenate([now.edges, wrong])
      now = EdgeSet(edges, self._pricer.schedule(edges))
      best = min(best, now, key=lambda f: f.step_s)
    return best

  def _new(self, pairs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Pairs that are neither control edges of the graph nor in `chosen`."""
    graph = self._pricer.graph
    there = np.concatenate([graph.edges[graph.edge_tensors < 0], chosen])
    known, asked = (e[:, 0].astype(np.int64) * graph.num_ops + e[:, 1]
                    for e in (there, pairs))
    return pairs[~np.isin(asked, known)]

  def _heavy(self, share: float) -> np.ndarray:
    """The heaviest ops of each device that control edges may join."""
    weight_s = self._wanted.end_s - self._wanted.start_s
    np.add.at(weight_s, self._wanted.transfer_ops,
              self._wanted.transfer_end_s - self._wanted.transfer_start_s)
    heavy = []
    placement = self._pricer.placement
    for device in range(placement.cluster.num_devices):
      ops = np.flatnonzero(self._may & (placement.devices == device))
      longest = ops[np.argsort(-weight_s[ops], kind='stable')]
      before_s = np.cumsum(weight_s[longest]) - weight_s[longest]
      heavy.append(longest[before_s < share * weight_s[ops].sum()])
    return np.sort(np.concatenate(heavy))

  def throttled(self, found: EdgeSet) -> EdgeSet:
    """The edges, with throttles added as long as these shorten the step."""
    while self._streams and self._pricer.left > 0:
      better = next((f for f in self._throttles(found)
                     if f.step_s < found.step_s * (1 - _LEAST_GAIN)), None)
      if better is None:
        break
      found = better
    return found

  def _throttles(self, found: EdgeSet) -> Iterator[EdgeSet]:
    """The edges with all throttles of a kind, then with ever fewer of these."""
    for back, hops in _THROTTLES:
      edges = self._new(self._holding(found.schedule, back, hops), found.edges)
      while len(edges) and self._pricer.left > 0:
        more = np.concatenate([found.edges, edges])
        yield EdgeSet(more, self._pricer.schedule(more))
        edges = edges[:len(edges) // 2]

  def _holding(self, now: schedule_lib.Schedule, back: int,
               hops: float) -> np.ndarray:
    """int32 [T, 2], throttles for copies that wait, longest waits first."""
    placement = self._pricer.placement
    hop_s = np.array([d.hop_s for d in placement.cluster.devices])
    own = []  # Ops of each device in the order of their starts.
    for device in range(placement.cluster.num_devices):
      ops = np.flatnonzero(self._may & (placement.devices == device))
      own.append(ops[np.argsort(now.start_s[ops], kind='stable')])
    waits_s: dict[tuple[int, int], float] = {}
    ready_s = now.end_s[now.transfer_ops]
    late = ((now.transfer_tensors >= 0) &
            (now.transfer_start_s - ready_s > hop_s[now.transfer_targets]))
    for copy in np.flatnonzero(late).tolist():
      senders = own[now.transfer_sources[copy]]
      targets = own[now.transfer_targets[copy]]
      before = np.searchsorted(now.end_s[senders], ready_s[copy], 'right')
      if before <= back:
        continue
      sender = senders[before - 1 - back]
      free_s = (now.end_s[sender] + hops * hop_s[now.transfer_targets[copy]])
      place = np.searchsorted(now.start_s[targets], free_s, 'right')
      if (place < len(targets) and
          now.start_s[targets[place]] < now.transfer_start_s[copy]):
        edge = int(sender), int(targets[place])
        waits_s[edge] = max(waits_s.get(edge, 0.),
                            now.transfer_start_s[copy] - ready_s[copy])
    return edge_pricer.as_edges(sorted(waits_s,
                                       key=lambda edge: -waits_s[edge]))

  def fewest(self, found: EdgeSet, priorities: np.ndarray) -> EdgeSet:
    """Leaves out edges while the step stays within a limit.

    The limit is the step at which the search ends (`_KEPT_GAIN`), or the
    present step, whichever is longer.
    """
    limit_s = max(found.step_s, self._target_s)
    # The order of ops of nearly equal priority matters least, so try to leave
    # out their edges first.
    differ = priorities[found.edges[:, 0]] - priorities[found.edges[:, 1]]
    edges = found.edges[np.argsort(differ, kind='stable')]
    found = dataclasses.replace(found, edges=edges)
    size = len(edges) // 2
    while size:
      start = 0
      while start < len(found.edges) and self._pricer.left > 0:
        fewer = np.delete(found.edges, slice(start, start + size), axis=0)
        schedule = self._pricer.schedule(fewer)
        if schedule.step_time_s <= limit_s:
          found = EdgeSet(fewer, schedule)
        else:
          start += size
      size //= 2
    return found


def _pairs(heavy: np.ndarray, devices: np.ndarray,
           schedule: schedule_lib.Schedule) -> np.ndarray:
  """int32 [P, 2]: last op that ended before a heavy op, and this heavy op."""
  pairs = []
  for device in np.unique(devices):
    ops = heavy[devices[heavy] == device]
    by_end = ops[np.argsort(schedule.end_s[ops], kind='stable')]
    last = np.searchsorted(schedule.end_s[by_end], schedule.start_s[ops],
                           'right') - 1
    pairs.append(np.stack([by_end[last], ops], axis=1)[last >= 0])
  return edge_pricer.as_edges(np.concatenate(pairs))
