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

# Seconds that a process of Scotch may take.
_TIMEOUT_S = 600.
# Allowed excess of a part, as a share of its weight; the library's default.
_IMBALANCE = 0.01
# Further such shares that are tried.
_IMBALANCES = (0.05, 0.2, 0.5)
# Seeds that are tried.
_NUM_SEEDS = 3
# Seeds of `partition`, at the least and at the most.
_SEEDS_OF_PARTITION = 6, 64
# Vertices of all mappings of one round together, at the most, so that a large
# graph takes only seconds.
_MOST_VERTICES = 500_000


class ScotchPlacer:
  """The best by price of many mappings onto the topology.

  As in the baseline of the hierarchical planner (Mirhoseini et al. 2018,
  section 3.2), Scotch gets the cost of each op, the bytes of each edge, the
  speeds of the devices and the speeds of the links. Groups that may be on only
  one device are fixed vertices. The placer first tries all devices, CPUs
  included, and several numbers of accelerators. Then it tries other balances
  and other orders of the vertices on the devices of the best proposal.
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
  """int [V], the part of each vertex in the best of several mappings.

  A mapping within the allowed imbalance is better than one beyond it, and a
  smaller excess is better. Of equals, the mapping with the least traffic wins.

  Args:
    graph: V vertices.
    num_parts: k.
    shares: float64 [k], share of the weight that each part should get; equal by
      default.
    distances: float64 [k, k], cost of a byte between two parts; equal by
      default.
    fixed: int [V], part that a vertex must be in, -1 for any; any by default.
    imbalance: Allowed excess of a part, as a share of its weight.
    seeds: Seeds of the mappings; by default, small graphs get more seeds.

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
  # Two descriptions of the same architecture, which Scotch treats differently.
  uniform = np.ones((num_parts, num_parts)) - np.eye(num_parts)
  mappings = _run([
      dict(graph=graph, shares=shares, distances=form, fixed=fixed,
           imbalance=imbalance * factor, seed=seed, balanced=balanced)
      for form in ((distances,) if distances is not None else (None, uniform))
      for factor in (1., 0.3) for balanced in (False, True) for seed in seeds
  ])
  return min((parts for parts in mappings if parts is not None),
             key=lambda parts:
             (partitioning.excess(graph, parts, shares, imbalance),
              arrangement.traffic(graph, parts, distances)))


def map_targets(jobs: Sequence[tuple[partitioning.Target, float, int,
                                     bool]], allowed: np.ndarray,
                topology: bool = True) -> list[partitioning.Proposal]:
  """Maps graphs onto their targets.

  Args:
    jobs: Target, imbalance, seed, and whether to prefer balance, of each job.
    allowed: bool [V, D], devices that each vertex may have.
    topology: Whether distances between devices count in the mapping. If not,
      all cut bytes cost the same. In both cases parts are assigned to devices
      by distance afterwards.
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
    mapping = (next(parts) if len(target.devices) > 1 else np.zeros(
        target.graph.num_vertices, int))
    if mapping is not None:
      mapping = arrangement.arrange(mapping, target, allowed)
      result.append(partitioning.Proposal(target.devices[mapping], target))
  return result


def _propose(problem: placer_lib.Problem, memory: float,
             see: partitioning.See) -> None:
  """Tries several numbers of devices, then mappings onto the best of them."""
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
  """Distances for Scotch; None for equal devices at equal distances.

  Scotch maps best onto an architecture without distances.
  """
  count = len(target.devices)
  if topology and not target.uniform:
    return target.distances
  if np.allclose(target.shares, 1 / count):
    return None
  return np.ones((count, count)) - np.eye(count)


def _run(jobs: list[dict[str, Any]]) -> list[np.ndarray | None]:
  # Scotch 7.0.16 crashes on some small graphs by an invalid write.
  return partition_process.call_each('scotch', jobs, _TIMEOUT_S,
                                     {'SCOTCH_PTHREAD_NUMBER': '1'})
