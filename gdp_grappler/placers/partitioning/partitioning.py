"""Targets, proposals and their prices, which all partitioners share.

A partitioner minimises the cut bytes of balanced parts. It does not know the
step time. So each partitioner proposes many placements, also on fewer devices,
and the placer keeps the placement with the best price.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterable, Sequence

from absl import logging
import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements

# Stands for any part: the vertex is not fixed.
FREE = -1
# Share of the weight for a device that gets only the vertices fixed to it.
_TINY_SHARE = 1e-4
# Largest number of device counts to try, beside repeated halves.
_MOST_COUNTS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
  """A graph and the devices to map it onto.

  Attributes:
    graph: V vertices. A vertex that is fixed to a device other than the workers
      has weight 0.
    devices: int [k], the workers, then devices that have only fixed vertices.
    num_workers: Number of workers.
    shares: float64 [k], share of the weight that each device should get; sum 1.
    fixed: int64 [V], index into `devices` of the part that a vertex must be in;
      `FREE` for any part.
    distances: float64 [k, k], seconds of a message of mean size; symmetric, and
      never longer than the way over a third device.
  """

  graph: group_graph.GroupGraph
  devices: np.ndarray
  num_workers: int
  shares: np.ndarray
  fixed: np.ndarray
  distances: np.ndarray

  @property
  def worker_shares(self) -> np.ndarray:
    """float64 [num_workers], shares of the workers alone; sum 1."""
    shares = self.shares[:self.num_workers]
    return shares / shares.sum()

  @property
  def uniform(self) -> bool:
    """Whether the distances between all workers are nearly equal."""
    workers = self.distances[:self.num_workers, :self.num_workers]
    pairs = workers[~np.eye(self.num_workers, dtype=bool)]
    return not pairs.size or pairs.max() <= 1.05 * pairs.min()


@dataclasses.dataclass(frozen=True)
class Proposal:
  """A placement and the target for which a partitioner made it.

  Attributes:
    devices: int [G], devices of groups.
    target: The target.
  """

  devices: np.ndarray
  target: Target


# Function that prices proposals and returns the best proposal so far. When the
# time is over, it takes only one proposal from the iterator.
PriceProposals = Callable[[Iterable[Proposal]], Proposal]
# Makes proposals for targets.
Propose = Callable[[Sequence[Target]], Iterable[Proposal]]


def accelerators(cluster: cluster_lib.Cluster,
                 seconds: np.ndarray) -> np.ndarray:
  """int [A], the GPUs, or the CPUs if there is no GPU; the fastest first.

  Args:
    cluster: D devices.
    seconds: float64 [N, D], seconds of ops (`Problem.busy_seconds`).
  """
  devices = np.array(cluster.accelerators)
  return devices[np.argsort(-speeds(cluster, seconds, devices), kind='stable')]


def speeds(cluster: cluster_lib.Cluster, seconds: np.ndarray,
           devices: np.ndarray) -> np.ndarray:
  """float64 [k], speeds of devices over the whole graph.

  Devices that were cut from one processor take turns, so they divide its speed.

  Args:
    cluster: D devices.
    seconds: float64 [N, D], seconds of ops.
    devices: int [k], the devices that share the work.
  """
  totals = seconds[:, devices].sum(axis=0)
  units = cluster.compute_units[devices]
  slots = np.array([cluster.devices[d].slots for d in devices])
  return slots / np.maximum(totals, 1e-30) / np.bincount(units)[units]


def mean_link(cluster: cluster_lib.Cluster,
              devices: np.ndarray) -> tuple[float, float]:
  """Mean seconds of latency, and mean seconds per byte, of some links.

  Args:
    cluster: Has the links.
    devices: int [k], the devices whose links count. Both results are 0 for
      fewer than two devices.
  """
  latency_s, bytes_per_s = cluster.link_arrays[:2]
  if len(devices) < 2:
    return 0., 0.
  between = np.ix_(devices, devices)
  count = len(devices) * (len(devices) - 1)
  return (float(latency_s[between].sum() / count),
          float((1 / bytes_per_s[between]).sum() / count))


def message_bytes(cluster: cluster_lib.Cluster, devices: np.ndarray) -> float:
  """Bytes whose transfer takes as long as the latency; mean over the links.

  Args:
    cluster: Has the links.
    devices: int [k], the devices whose links count.
  """
  latency, bandwidth, _ = cluster.link_arrays
  if len(devices) < 2:
    return 0.
  source, target = np.nonzero(~np.eye(len(devices), dtype=bool))
  pairs = devices[source], devices[target]
  return float((latency[pairs] * bandwidth[pairs]).mean())


def make_target(problem: placer_lib.Problem, workers: np.ndarray,
                graph: group_graph.GroupGraph, memory: float = 0.) -> Target:
  """The target of some of a problem's devices.

  A group that may be on no worker is fixed to its fastest device.

  Args:
    problem: The problem to place.
    workers: int [w], devices that share the work.
    graph: Graph of the problem; the target's graph has other weights.
    memory: Weight of memory, from 0 to 1. At 0 the parts balance seconds, at 1
      they balance bytes.
  """
  cluster, seconds = problem.cluster, problem.busy_seconds
  at_work = problem.allowed[:, workers]
  outside = ~at_work.any(axis=1)
  homes = np.where(problem.allowed, problem.graph.group_sums(seconds),
                   np.inf).argmin(axis=1)
  extra = np.unique(homes[outside])
  fixed = np.where(at_work.sum(axis=1) == 1, at_work.argmax(axis=1), FREE)
  fixed[outside] = len(workers) + np.searchsorted(extra, homes[outside])
  weights = _mix(
      group_graph.work(problem.graph, seconds, workers) * ~outside,
      group_graph.memory_bytes(problem.graph) * ~outside, memory)
  shares = np.concatenate([
      _mix(speeds(cluster, seconds, workers), _room(cluster, workers), memory),
      np.zeros(len(extra))
  ])
  shares = np.maximum(shares / shares.sum(), _TINY_SHARE)
  typical = graph.net_bytes.mean() if len(graph.net_bytes) else 0.
  devices = np.concatenate([workers, extra]).astype(int)
  return Target(graph.reweighted(weights), devices, len(workers),
                shares / shares.sum(), fixed,
                _distances(cluster, devices, typical))


def make_targets(problem: placer_lib.Problem, memory: float = 0.,
                 with_all: bool = False,
                 counts: Sequence[int] | None = None) -> list[Target]:
  """Targets of several numbers of accelerators, with and without latency.

  With latency, the latency of a message counts as bytes of an edge. There may
  not be enough time for all targets. So the targets that most often give the
  best placement come first.

  Args:
    problem: The problem to place.
    memory: See `make_target`.
    with_all: Whether to add a target of all devices of the cluster.
    counts: Numbers of accelerators; None means those that pay most often.
  """
  fast = accelerators(problem.cluster, problem.busy_seconds)
  graphs = [
      group_graph.build(problem.graph, problem.busy_seconds, fast, size)
      for size in (message_bytes(problem.cluster, fast), 0.)
  ]
  sets = [fast[:count] for count in counts or _counts(len(fast))]
  if with_all and len(fast) < problem.cluster.num_devices:
    sets.append(np.arange(problem.cluster.num_devices))
  return [
      make_target(problem, workers, graph, memory) for workers in sets
      for graph in graphs[:2 if len(workers) > 1 else 1]
  ]


def cheapest_legal(problem: placer_lib.Problem, graph: group_graph.GroupGraph,
                   devices: np.ndarray) -> np.ndarray:
  """int [G], a legal placement: groups on a forbidden device move.

  Such a group moves to the allowed device on which its ops and its transfers
  take the least time.

  Args:
    problem: G groups.
    graph: Graph of the problem.
    devices: int [G], a placement.
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


def best_of_two_rounds(problem: placer_lib.Problem, first: Propose,
                       further: Propose) -> placement_lib.Placement:
  """The best proposal of two rounds.

  The first round is for all targets. The second round is for the targets with
  as many devices as the best proposal of the first round, if it has more than
  one. If that proposal is for all devices of the cluster, the second round is
  also for the targets of all accelerators. After `Problem.time_budget_s` there
  is no second round. See `best` for the price.

  Args:
    problem: The problem to place.
    first: Makes the proposals of the first round.
    further: Makes the proposals of the second round.
  """
  deadline = problem.deadline()

  def propose(memory: float, price: PriceProposals) -> None:
    targets = make_targets(problem, memory, with_all=True)
    count = price(first(targets)).target.num_workers
    if deadline.passed:
      return
    wanted = {count, min(count, len(problem.cluster.accelerators))} - {1}
    price(further([each for each in targets if each.num_workers in wanted]))

  return best(problem, propose)


def best(
    problem: placer_lib.Problem,
    propose: Callable[[float, PriceProposals],
                      object]) -> placement_lib.Placement:
  """The best of many proposals by price.

  A placement that fits into the memories is better than one that does not. The
  first round of proposals balances seconds. If the fastest placement does not
  fit, a second round balances seconds and bytes, and a third one bytes alone.
  Then `memory_fit.best_fitting` prices one device of each kind, and repairs
  placements that overflow a memory but are faster than all that fit. If no
  placement fits after that and prices are simulated, a local search starts with
  the best one. No further round begins after `Problem.time_budget_s`. If a
  partitioner fails, its round ends, and earlier proposals still count.

  Args:
    problem: The problem to place.
    propose: Makes the proposals of one round. Its arguments are the weight of
      memory (see `make_target`) and the function that prices proposals.

  Raises:
    GdpError: the first proposals failed.
  """
  if not problem.graph.num_ops:
    return placement_lib.of_nothing(problem.cluster)
  deadline = problem.deadline()
  judge = _Judge(problem, deadline)
  for memory in (0., 0.5, 1.):
    try:
      propose(memory, judge.price)
    except errors.GdpError as error:
      if judge.leader is None:
        raise
      logging.info('Partitions of "%s" are left out. %s', problem.graph.name,
                   error)
    if judge.priced.fastest_fits or deadline.passed:
      break
  return memory_fit.best_fitting(problem, judge.priced, deadline)


class _Judge:
  """Prices proposals and keeps the best one.

  Attributes:
    priced: The placements of all proposals.
    leader: The best proposal and its key; None before the first proposal.
  """

  def __init__(self, problem: placer_lib.Problem,
               deadline: deadlines.Deadline) -> None:
    self._problem, self._deadline = problem, deadline
    self.priced = priced_placements.PricedPlacements(problem.graph,
                                                     problem.evaluator)
    self.leader: tuple[evaluator_lib.Key, Proposal] | None = None

  def price(self, proposals: Iterable[Proposal]) -> Proposal:
    """See `PriceProposals`."""
    seen = []
    for proposal in proposals:
      seen.append(proposal)
      if self._deadline.passed:
        break
    devices = [
        cheapest_legal(self._problem, proposal.target.graph, proposal.devices)
        for proposal in seen
    ]
    keys = self.priced.add(devices, ceiling_s=None).keys()
    for key, proposal in zip(keys, seen):
      if self.leader is None or key < self.leader[0]:
        self.leader = key, proposal
    assert self.leader is not None  # The first round has proposals.
    return self.leader[1]


def _counts(most: int) -> list[int]:
  """Numbers of devices to try: 1, all, halves, then numbers in between."""
  halves = [most]
  while halves[-1] > 1:
    halves.append(-(-halves[-1] // 2))
  spread = np.geomspace(1, most, min(most, _MOST_COUNTS)).round().astype(int)
  others = range(1, most + 1) if most <= _MOST_COUNTS else spread.tolist()
  return list(dict.fromkeys([1, *halves, *others]))


def _room(cluster: cluster_lib.Cluster, devices: np.ndarray) -> np.ndarray:
  """float64 [k], bytes of memory; devices that share a memory divide it."""
  pools = cluster.memory_pools[devices]
  return cluster.pool_bytes[pools] / np.bincount(pools)[pools]


def _mix(first: np.ndarray, second: np.ndarray, weight: float) -> np.ndarray:
  """Weighted mean of two amounts; the second is scaled to the first's sum."""
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
