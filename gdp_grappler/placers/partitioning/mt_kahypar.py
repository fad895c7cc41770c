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

# Seconds that a process of Mt-KaHyPar may take.
_TIMEOUT_S = 600.
# Allowed excess of a part, as a share of its weight; from the library's
# documentation.
_IMBALANCE = 0.03
# Further such shares that are tried.
_IMBALANCES = (0.1, 0.3)
# Vertices of all mappings of one round together, at the most, so that a large
# graph takes only seconds.
_MOST_VERTICES = 150_000
# Vertices of all mappings of one round together, per second of the time budget.
# The library cannot be stopped.
_VERTICES_PER_S = 6_000


class MtKahyparPlacer:
  """The best by price of many mappings of the hypergraph of tensors.

  A net is a tensor with the group that computes it and all groups that use it.
  So a tensor that is sent to a device counts once, even if several groups use
  it there. If all distances between devices are equal, the library minimises
  the number of devices of each net; otherwise it minimises the Steiner tree
  that joins the devices of each net. Parts get work in proportion to the speed
  of their device. Groups that may be on only one device are fixed vertices.

  The placer first tries several numbers of accelerators (or of CPUs if there is
  none) and all devices together, with and without the latency of a message.
  Then it tries looser balance and another seed on the devices of the best
  proposal. It uses the library's deterministic preset.
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

  A mapping within the allowed imbalance is better than one beyond it, and a
  smaller excess is better. Of equals, the mapping that sends the fewest bytes
  wins; a tensor counts once for each part that needs it.

  Args:
    graph: V vertices.
    num_parts: k.
    shares: float64 [k], share of the weight that each part should get; equal by
      default.
    distances: float64 [k, k], cost of a byte between two parts; equal by
      default.
    fixed: int [V], part that a vertex must be in, -1 for any; any by default.
    imbalance: Allowed excess of a part, as a share of its weight.
    seeds: Seeds of the mappings.

  Raises:
    GdpError: mtkahypar is not installed, or the library failed.
  """
  extras.require('The placer "mt_kahypar"', 'mtkahypar')
  shares, fixed = partitioning.completed(graph, num_parts, shares, fixed)
  if num_parts == 1 or not graph.num_vertices:
    return np.zeros(graph.num_vertices, int)
  mappings = [
      parts for parts in _run([
          dict(graph=graph, shares=shares, distances=distances, fixed=fixed,
               imbalance=imbalance, seed=seed) for seed in seeds
      ]) if parts is not None
  ]
  return min(
      mappings, key=lambda parts:
      (partitioning.excess(graph, parts, shares, imbalance),
       sent_bytes(graph, parts, distances)))


def sent_bytes(graph: group_graph.GroupGraph, parts: np.ndarray,
               distances: np.ndarray | None = None) -> float:
  """Bytes of all nets, once for each part other than the producer's.

  Args:
    graph: H nets.
    parts: int [V], the part of each vertex.
    distances: float64 [k, k], factors of bytes from the part of the producer to
      the part of the receiver; 1 if None.
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
  """Tries several numbers of devices, then mappings onto the best of them."""
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
  """Vertices of all mappings of one round."""
  if problem.time_budget_s is None:
    return _MOST_VERTICES
  return int(min(_MOST_VERTICES, problem.time_budget_s * _VERTICES_PER_S))


def _map_targets(jobs: Sequence[tuple[partitioning.Target, float, int]],
                 allowed: np.ndarray) -> list[partitioning.Proposal]:
  """Maps graphs onto targets, with imbalances and seeds."""
  several = [job for job in jobs if len(job[0].devices) > 1]
  mappings = _run([
      dict(graph=target.graph, shares=target.shares,
           distances=None if target.uniform else target.distances,
           fixed=target.fixed, imbalance=imbalance, seed=seed)
      for target, imbalance, seed in several
  ]) if several else []
  mapped = [(target, parts) for (target, _, _), parts in zip(several, mappings)
            if parts is not None]
  mapped += [(target, np.zeros(target.graph.num_vertices, int))
             for target, _, _ in jobs if len(target.devices) == 1]
  return [
      partitioning.Proposal(
          target.devices[arrangement.arrange(parts, target, allowed)], target)
      for target, parts in mapped
  ]


def _run(jobs: list[dict[str, Any]]) -> list[np.ndarray | None]:
  """The parts of each job; None for a job that the library refuses."""
  return partition_process.call_each('mt_kahypar', jobs, _TIMEOUT_S)
