"""Static mapping by Scotch.

F. Pellegrini and J. Roman: SCOTCH: A software package for static mapping by
dual recursive bipartitioning of process and architecture graphs. HPCN-Europe
1996, 493-498; F. Pellegrini: Distillating knowledge about Scotch. Dagstuhl
Seminar Proceedings 09061, 2009.
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
_IMBALANCE = 0.01  # As the library has it.
_IMBALANCES = (0.05, 0.2, 0.5)
_NUM_SEEDS = 3
_SEEDS_OF_PARTITION = 6, 64
# Of all mappings of one round together, so that large graphs take seconds.
_MOST_VERTICES = 500_000


class ScotchPlacer:
  """The best by price of many mappings onto the topology.

  As in the baseline of the hierarchical planner (Mirhoseini et al. 2018,
  section 3.2) Scotch is told what each op costs, how many bytes flow along
  each edge, how fast the devices are and how fast they communicate. Groups
  that may be on one device only are fixed vertices. Tried are all devices,
  CPUs included, and all numbers of accelerators; then, on the devices that did
  best, other balances and other numberings of the vertices.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    extras.require('The placer "scotch"', 'scotchpy')
    return partitioning.best(problem, _propose)


def partition(graph: group_graph.GroupGraph, num_parts: int, *,
              shares: np.ndarray | None = None,
              distances: np.ndarray | None = None,
              fixed: np.ndarray | None = None, imbalance: float = _IMBALANCE,
              seeds: Iterable[int] | None = None) -> np.ndarray:
  """int [V], the part of each vertex in the lightest of several mappings.

  Mappings that keep the balance come first; if none does, the most balanced
  wins.

  Args:
    graph: V vertices.
    num_parts: k.
    shares: float64 [k], weight that each part should get; equal by default.
    distances: float64 [k, k], what a byte costs between parts; the same for
      all pairs by default.
    fixed: int [V], part of a vertex that has one, else -1; none by default.
    imbalance: How much more a part may get.
    seeds: Of the mappings; by default the more, the smaller the graph.

  Raises:
    GdpError: scotchpy is not installed, or Scotch failed.
  """
  extras.require('The placer "scotch"', 'scotchpy')
  shares, fixed = partitioning.completed(graph, num_parts, shares, fixed)
  if num_parts == 1 or not graph.num_vertices:
    return np.zeros(graph.num_vertices, int)
  if seeds is None:
    fewest, most = _SEEDS_OF_PARTITION
    seeds = range(
        min(max(_MOST_VERTICES // graph.num_vertices // 4, fewest), most))
  # Two descriptions of one architecture: Scotch treats them differently.
  uniform = np.ones((num_parts, num_parts)) - np.eye(num_parts)
  found = _run([
      dict(graph=graph, shares=shares, distances=form, fixed=fixed,
           imbalance=imbalance * factor, seed=seed, balanced=balanced)
      for form in ((distances,) if distances is not None else (None, uniform))
      for factor in (1., 0.3) for balanced in (False, True) for seed in seeds
  ])
  return min((parts for parts in found if parts is not None), key=lambda parts:
             (partitioning.excess(graph, parts, shares, imbalance),
              arrangement.traffic(graph, parts, distances)))


def map_targets(jobs: Sequence[tuple[partitioning.Target, float, int,
                                     bool]], allowed: np.ndarray,
                topology: bool = True) -> list[partitioning.Proposal]:
  """Maps graphs onto their targets.

  Args:
    jobs: Targets, imbalances, seeds, and whether to prefer balance.
    allowed: bool [V, D].
    topology: Whether distances between devices count; if not, all bytes that
      cross cost the same, and parts are only arranged afterwards.
  """
  several = [job for job in jobs if len(job[0].devices) > 1]
  parts = iter(
      _run([
          dict(graph=target.graph, shares=target.
               shares, distances=_distances(target, topology), fixed=target.
               fixed, imbalance=imbalance, seed=seed, balanced=balanced)
          for target, imbalance, seed, balanced in several
      ]) if several else ())
  result = []
  for target, *_ in jobs:
    found = (next(parts) if len(target.devices) > 1 else np.zeros(
        target.graph.num_vertices, int))
    if found is not None:
      found = arrangement.arrange(found, target, allowed)
      result.append(partitioning.Proposal(target.devices[found], target))
  return result


def _propose(problem: placer_lib.Problem, memory: float,
             see: partitioning.See) -> None:
  """Rounds of proposals: which devices, then which mapping."""
  targets = partitioning.make_targets(problem, memory, with_all=True)
  most = max(_MOST_VERTICES // max(problem.graph.num_groups, 1), 2)
  winner = see(
      map_targets([
          (target, _IMBALANCE, problem.seed, True) for target in targets[:most]
      ], problem.allowed))
  near = partitioning.like(winner, targets, problem)
  see(
      map_targets([
          (target, imbalance, problem.seed + seed, balanced)
          for imbalance, seed, balanced in (*((i, 0, True)
                                              for i in _IMBALANCES),
                                            (_IMBALANCE, 0, False),
                                            *((_IMBALANCES[0], s, True)
                                              for s in range(1, _NUM_SEEDS)))
          for target in near
      ][:most], problem.allowed))


def _distances(target: partitioning.Target,
               topology: bool) -> np.ndarray | None:
  """None for equal devices at equal distances, which Scotch does best."""
  count = len(target.devices)
  if topology and not target.uniform:
    return target.distances
  if np.allclose(target.shares, 1 / count):
    return None
  return np.ones((count, count)) - np.eye(count)


def _run(jobs: list[dict[str, Any]]) -> list[np.ndarray | None]:
  # On some small graphs 7.0.16 writes where it may not, and dies.
  return partition_process.call_each('scotch', jobs, _TIMEOUT_S,
                                     {'SCOTCH_PTHREAD_NUMBER': '1'})
