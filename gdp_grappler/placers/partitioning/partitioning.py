"""What all placers by graph partitioning share.

A partitioner knows balance and cut bytes, not time. So each of them proposes
many placements, on fewer devices too, and the best by price is taken.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import priced_placements

FREE = -1
# Share of a device that takes part for its fixed vertices alone.
_TINY_SHARE = 1e-4
_MOST_COUNTS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
  """Devices to map a graph onto.

  Attributes:
    graph: V vertices; those fixed outside the workers weigh nothing.
    devices: int [k], the workers, then those that only hold fixed vertices.
    num_workers: How many of the devices are workers.
    shares: float64 [k] of the weight each device should get; sum 1.
    fixed: int64 [V], the part (an index into `devices`) that a vertex has to
      be in, else `FREE`.
    distances: float64 [k, k], seconds of a message of usual size; symmetric,
      never longer than by way of a third device.
  """

  graph: group_graph.GroupGraph
  devices: np.ndarray
  num_workers: int
  shares: np.ndarray
  fixed: np.ndarray
  distances: np.ndarray

  @property
  def worker_shares(self) -> np.ndarray:
    """float64 [num_workers], with sum 1."""
    shares = self.shares[:self.num_workers]
    return shares / shares.sum()

  @property
  def uniform(self) -> bool:
    """Whether all workers are equally far from each other."""
    workers = self.distances[:self.num_workers, :self.num_workers]
    pairs = workers[~np.eye(self.num_workers, dtype=bool)]
    return not pairs.size or pairs.max() <= 1.05 * pairs.min()


@dataclasses.dataclass(frozen=True)
class Proposal:
  """A placement of the groups, int [G], and the target it was made for."""

  devices: np.ndarray
  target: Target


# Is shown proposals and tells the best of all so far. When the time is over it
# looks at the first one only: who makes them when asked for saves the others.
See = Callable[[Iterable[Proposal]], Proposal]


def accelerators(problem: placer_lib.Problem) -> np.ndarray:
  """int [A], the GPUs, or the CPUs where there is none; the fastest first."""
  devices = np.array(problem.cluster.accelerators)
  return devices[np.argsort(-_speeds(problem, devices), kind='stable')]


def message_bytes(cluster: cluster_lib.Cluster, devices: np.ndarray) -> float:
  """Bytes that take as long as the latency of a link, at the mean."""
  latency, bandwidth, _ = cluster.link_arrays
  if len(devices) < 2:
    return 0.
  source, target = np.nonzero(~np.eye(len(devices), dtype=bool))
  pairs = devices[source], devices[target]
  return float((latency[pairs] * bandwidth[pairs]).mean())


def make_target(problem: placer_lib.Problem, workers: np.ndarray,
                graph: group_graph.GroupGraph, memory: float = 0.) -> Target:
  """Maps a problem onto some of its devices.

  Groups that may be on no worker are fixed to their cheapest device.

  Args:
    problem: What to place.
    workers: int [w], devices that share the work.
    graph: Of the problem; gets other weights.
    memory: From 0, where parts share out seconds, to 1, where they share out
      memory.
  """
  at_work = problem.allowed[:, workers]
  outside = ~at_work.any(axis=1)
  homes = np.where(problem.allowed, _group_seconds(problem),
                   np.inf).argmin(axis=1)
  extra = np.unique(homes[outside])
  fixed = np.where(at_work.sum(axis=1) == 1, at_work.argmax(axis=1), FREE)
  fixed[outside] = len(workers) + np.searchsorted(extra, homes[outside])
  weights = _mix(
      group_graph.work(problem, workers) * ~outside,
      group_graph.memory_bytes(problem) * ~outside, memory)
  shares = np.concatenate([
      _mix(_speeds(problem, workers), _room(problem.cluster, workers), memory),
      np.zeros(len(extra))
  ])
  shares = np.maximum(shares / shares.sum(), _TINY_SHARE)
  typical = graph.net_bytes.mean() if len(graph.net_bytes) else 0.
  devices = np.concatenate([workers, extra]).astype(int)
  return Target(graph.reweighted(weights), devices, len(workers),
                shares / shares.sum(), fixed,
                _distances(problem.cluster, devices, typical))


def make_targets(problem: placer_lib.Problem, memory: float,
                 with_all: bool = False) -> list[Target]:
  """All numbers of accelerators, edges with and without latency.

  Those that most often win come first, for who cannot afford all.

  Args:
    problem: What to place.
    memory: See `make_target`.
    with_all: Whether to add all devices of the cluster.
  """
  fast = accelerators(problem)
  graphs = [
      group_graph.build(problem, fast, size)
      for size in (message_bytes(problem.cluster, fast), 0.)
  ]
  sets = [fast[:count] for count in _counts(len(fast))]
  if with_all and len(fast) < problem.cluster.num_devices:
    sets.append(np.arange(problem.cluster.num_devices))
  return [
      make_target(problem, workers, graph, memory) for workers in sets
      for graph in graphs[:2 if len(workers) > 1 else 1]
  ]


def like(winner: Proposal, targets: Sequence[Target],
         problem: placer_lib.Problem) -> list[Target]:
  """Targets of as many devices as the winner's, if they are several.

  Where all devices of the cluster won, all accelerators get their turn too.
  """
  count = winner.target.num_workers
  wanted = {count, min(count, len(accelerators(problem)))}
  return [
      target for target in targets
      if target.num_workers in wanted and target.num_workers > 1
  ]


def repair(problem: placer_lib.Problem, graph: group_graph.GroupGraph,
           devices: np.ndarray) -> np.ndarray:
  """int [G], with each group that is where it may not on its cheapest device.

  That is where its ops and what it sends and receives take least time.

  Args:
    problem: G groups.
    graph: Of the problem.
    devices: int [G].
  """
  allowed = problem.allowed
  wrong = np.flatnonzero(~allowed[np.arange(len(devices)), devices])
  if not wrong.size:
    return devices
  latency, bandwidth, _ = problem.cluster.link_arrays
  number = np.full(len(devices), -1)
  number[wrong] = np.arange(len(wrong))
  _, neighbours, size = graph.adjacency
  edges = np.flatnonzero(number[graph.rows] >= 0)
  there = devices[neighbours[edges]]
  of_op = number[problem.graph.groups]
  ops = np.flatnonzero(of_op >= 0)
  cost = np.empty((len(wrong), problem.cluster.num_devices))
  for device in range(problem.cluster.num_devices):
    sent_s = latency[there, device] + size[edges] / bandwidth[there, device]
    cost[:, device] = np.bincount(
        of_op[ops], problem.busy_seconds[ops, device],
        len(wrong)) + np.bincount(number[graph.rows[edges]], sent_s, len(wrong))
  result = devices.copy()
  result[wrong] = np.where(allowed[wrong], cost, np.inf).argmin(axis=1)
  return result


def completed(graph: group_graph.GroupGraph, num_parts: int,
              shares: np.ndarray | None,
              fixed: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
  """Shares [k] and fixed parts [V], equal and free where none are given."""
  if shares is None:
    shares = np.full(num_parts, 1 / num_parts)
  if fixed is None:
    fixed = np.full(graph.num_vertices, FREE)
  return shares, fixed


def excess(graph: group_graph.GroupGraph, parts: np.ndarray, shares: np.ndarray,
           imbalance: float) -> float:
  """How much more than `imbalance` the heaviest part has, rounded."""
  return round(max(graph.imbalance(parts, shares) - 1 - imbalance, 0.), 4)


def best(
    problem: placer_lib.Problem,
    propose: Callable[[placer_lib.Problem, float, See], object]
) -> placement_lib.Placement:
  """The best of many proposals by price.

  One that fits into memory beats one that does not. Where the fastest does not
  fit, memory is shared out as well, then memory alone; and parts of what would
  be faster move until it fits (`memory_repair`), which takes least from
  devices that are almost large enough. Each device alone is looked at, too, and
  if nothing fits even so, what a local search makes of the best. When
  `Problem.time_budget_s` is over, no further round begins.

  Args:
    problem: What to place.
    propose: Makes proposals for a problem and a weight of memory (see
      `make_target`) and shows them, some at a time.
  """
  if not problem.graph.num_ops:
    return placement_lib.Placement(np.zeros(0, np.int32), problem.cluster)
  deadline = problem.deadline()
  judge = _Judge(problem, deadline)
  found = judge.found
  for memory in (0., 0.5, 1.):
    propose(problem, memory, judge.see)
    if found.enough or deadline.passed:
      break
  return found.settled()


class _Judge:
  """Prices proposals and remembers whose is the best."""

  def __init__(self, problem: placer_lib.Problem,
               deadline: deadlines.Deadline) -> None:
    self._problem, self._deadline = problem, deadline
    self.found = priced_placements.PricedPlacements(problem)
    self._leader: tuple[evaluator_lib.Key, Proposal] | None = None

  def see(self, proposals: Iterable[Proposal]) -> Proposal:
    """See `See`."""
    seen = []
    for proposal in proposals:
      seen.append(proposal)
      if self._deadline.passed:
        break
    devices = [
        repair(self._problem, proposal.target.graph, proposal.devices)
        for proposal in seen
    ]
    for key, proposal in zip(self.found.see(devices).keys(), seen):
      if self._leader is None or key < self._leader[0]:
        self._leader = key, proposal
    assert self._leader is not None  # The first round has proposals.
    return self._leader[1]


def _group_seconds(problem: placer_lib.Problem) -> np.ndarray:
  """float64 [G, D]."""
  return problem.graph.group_sums(problem.busy_seconds)


def _counts(most: int) -> list[int]:
  """How many devices to try: 1, all, halves, then what is between."""
  halves = [most]
  while halves[-1] > 1:
    halves.append(-(-halves[-1] // 2))
  spread = np.geomspace(1, most, min(most, _MOST_COUNTS)).round().astype(int)
  others = range(1, most + 1) if most <= _MOST_COUNTS else spread.tolist()
  return list(dict.fromkeys([1, *halves, *others]))


def _speeds(problem: placer_lib.Problem, devices: np.ndarray) -> np.ndarray:
  """float64 [k], of the whole graph; devices cut from one take turns."""
  seconds = problem.busy_seconds[:, devices].sum(axis=0)
  units = problem.cluster.compute_units[devices]
  slots = np.array([problem.cluster.devices[d].slots for d in devices])
  return slots / np.maximum(seconds, 1e-30) / np.bincount(units)[units]


def _room(cluster: cluster_lib.Cluster, devices: np.ndarray) -> np.ndarray:
  """float64 [k], bytes of memory; devices that share one divide it."""
  pools = cluster.memory_pools[devices]
  return cluster.pool_bytes[pools] / np.bincount(pools)[pools]


def _mix(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
  """Weighted mean of the shares of two amounts; `first` itself at weight 0."""
  if not weight:
    return first
  total = float(first.sum())
  return (1 - weight) * first + weight * second * (
      (total or 1.) / max(float(second.sum()), 1e-30))


def _distances(cluster: cluster_lib.Cluster, devices: np.ndarray,
               size: float) -> np.ndarray:
  latency, bandwidth, _ = cluster.link_arrays
  seconds = (latency + size / bandwidth)[np.ix_(devices, devices)]
  seconds = (seconds + seconds.T) / 2
  for middle in range(len(devices)):
    seconds = np.minimum(seconds, seconds[:, [middle]] + seconds[[middle]])
  return seconds
