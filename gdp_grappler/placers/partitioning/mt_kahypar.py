"""Hypergraph mapping onto the topology by Mt-KaHyPar.

L. Gottesbüren, T. Heuer, N. Maas, P. Sanders and S. Schlag: Scalable
high-quality hypergraph partitioning. ACM Transactions on Algorithms 20 (1),
2024; T. Heuer: A direct k-way hypergraph partitioning algorithm for optimizing
the Steiner tree metric. ALENEX 2024.
"""

from __future__ import annotations

from typing import Any, Iterable, Sequence

import numpy as np

from gdp_grappler import extras
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import arrangement
from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.placers.partitioning import partitioning

_TIMEOUT_S = 600.
_IMBALANCE = 0.03  # As the library's documentation has it.
_IMBALANCES = (0.1, 0.3)
# Of all mappings of one round together, so that large graphs take seconds; and
# of each second that there is: the library cannot be told to stop.
_MOST_VERTICES, _VERTICES_PER_S = 150_000, 6_000


class MtKahyparPlacer:
  """The best by price of many mappings of the hypergraph of tensors.

  A net is a tensor with all groups that have it, so that a tensor sent to a
  device counts once however many groups use it there. Where devices are not
  equally far from each other the objective is the Steiner tree that joins a
  net's devices, else the number of devices beside the first. Parts get work in
  proportion to the speed of their device; groups that may be on one device
  only are fixed vertices. Tried are all numbers of accelerators (or of CPUs
  where there is none) and all devices together, nets with and without the
  latency of a message; then, on the devices that did best, looser balance and
  another seed. The preset is the deterministic one.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    extras.require('The placer "mt_kahypar"', 'mtkahypar')
    return partitioning.best(problem, _propose)


def partition(
    graph: group_graph.GroupGraph, num_parts: int, *,
    shares: np.ndarray | None = None, distances: np.ndarray | None = None,
    fixed: np.ndarray | None = None, imbalance: float = _IMBALANCE,
    seeds: Iterable[int] = range(4)) -> np.ndarray:
  """int [V], the part of each vertex in the best of several mappings.

  Mappings that keep the balance come first; if none does, the most balanced
  wins. The best sends the fewest bytes, a tensor once to each part that needs
  it.

  Args:
    graph: V vertices.
    num_parts: k.
    shares: float64 [k], weight that each part should get; equal by default.
    distances: float64 [k, k], what a byte costs between parts; the same for
      all pairs by default.
    fixed: int [V], part of a vertex that has one, else -1; none by default.
    imbalance: How much more a part may get.
    seeds: Of the mappings.

  Raises:
    GdpError: mtkahypar is not installed, or it failed.
  """
  extras.require('The placer "mt_kahypar"', 'mtkahypar')
  shares, fixed = partitioning.completed(graph, num_parts, shares, fixed)
  if num_parts == 1 or not graph.num_vertices:
    return np.zeros(graph.num_vertices, int)
  found = [
      parts for parts in _run([
          dict(graph=graph, shares=shares, distances=distances, fixed=fixed,
               imbalance=imbalance, seed=seed) for seed in seeds
      ]) if parts is not None
  ]
  return min(
      found, key=lambda parts:
      (partitioning.excess(graph, parts, shares, imbalance),
       sent_bytes(graph, parts, distances)))


def sent_bytes(graph: group_graph.GroupGraph, parts: np.ndarray,
               distances: np.ndarray | None = None) -> float:
  """Bytes of all nets, once for each part beside the producer's.

  Args:
    graph: H nets.
    parts: int [V].
    distances: float64 [k, k] from producers to receivers; 1 if None.
  """
  net = np.repeat(np.arange(len(graph.net_bytes)), np.diff(graph.net_starts))
  home = parts[graph.net_pins[graph.net_starts[:-1]]]
  count = int(parts.max(initial=0)) + 1
  pairs = np.unique(net * count + parts[graph.net_pins])
  net, there = pairs // count, pairs % count
  length = 1. if distances is None else distances[home[net], there]
  return float((graph.net_bytes[net] * length)[there != home[net]].sum())


def _propose(problem: placer_lib.Problem, memory: float,
             see: partitioning.See) -> None:
  """Rounds of proposals: how many devices, then which mapping."""
  targets = partitioning.make_targets(problem, memory, with_all=True)
  most = max(_most_vertices(problem) // max(problem.graph.num_groups, 1), 2)
  winner = see(
      _map_targets(
          [(target, _IMBALANCE, problem.seed) for target in targets[:most]],
          problem.allowed))
  near = partitioning.like(winner, targets, problem)
  see(
      _map_targets([(target, imbalance, problem.seed + seed)
                    for imbalance, seed in (*((i, 0) for i in _IMBALANCES),
                                            (_IMBALANCES[0], 1))
                    for target in near][:most], problem.allowed))


def _most_vertices(problem: placer_lib.Problem) -> int:
  """Of one round."""
  if problem.time_budget_s is None:
    return _MOST_VERTICES
  return int(min(_MOST_VERTICES, problem.time_budget_s * _VERTICES_PER_S))


def _map_targets(jobs: Sequence[tuple[partitioning.Target, float, int]],
                 allowed: np.ndarray) -> list[partitioning.Proposal]:
  """Maps graphs onto targets, with imbalances and seeds."""
  several = [job for job in jobs if len(job[0].devices) > 1]
  found = _run([
      dict(graph=target.graph, shares=target.shares,
           distances=None if target.uniform else target.distances,
           fixed=target.fixed, imbalance=imbalance, seed=seed)
      for target, imbalance, seed in several
  ]) if several else []
  mapped = [(target, parts) for (target, _, _), parts in zip(several, found)
            if parts is not None]
  mapped += [(target, np.zeros(target.graph.num_vertices, int))
             for target, _, _ in jobs if len(target.devices) == 1]
  return [
      partitioning.Proposal(
          target.devices[arrangement.arrange(parts, target, allowed)], target)
      for target, parts in mapped
  ]


def _run(jobs: list[dict[str, Any]]) -> list[np.ndarray | None]:
  """Of each job; None where the library gave up on one of several."""
  return partition_process.call_each('mt_kahypar', jobs, _TIMEOUT_S)
