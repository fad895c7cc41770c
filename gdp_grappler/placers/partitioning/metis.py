"""Balanced minimum cuts by METIS.

G. Karypis and V. Kumar: A fast and high quality multilevel scheme for
partitioning irregular graphs. SIAM Journal on Scientific Computing 20 (1),
1998, 359-392; and Multilevel k-way partitioning scheme for irregular graphs.
Journal of Parallel and Distributed Computing 48 (1), 1998, 96-129.
"""

from __future__ import annotations

import types
from typing import Iterable

import numpy as np

from gdp_grappler import extras
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import arrangement
from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.placers.partitioning import partitioning

# Allowed excess of a part, as a share of its weight; the library's default.
_IMBALANCE = 0.03
# The library's default `ufactor` of k-way partitioning (False) and of recursive
# bisection (True), in thousandths.
_DEFAULT_UFACTORS = {False: 30, True: 1}
# Further shares of excess that are tried.
_IMBALANCES = (0.005, 0.1, 0.3, 1.)
# Seeds that are tried.
_NUM_SEEDS = 3


class MetisPlacer:
  """The best by price of many cuts, one part per device in use.

  Vertices are groups, weighted by seconds. Edges are weighted by bytes. Parts
  get work in proportion to the speed of their device. Groups that may be on
  none of the devices take no part in the cut.

  The placer first tries several numbers of accelerators (or of CPUs if there is
  none) and all devices together, with and without the latency of a message.
  Then it tries recursive bisection, looser and tighter balance and other seeds
  on the devices of the best proposal. METIS does not know in which order ops
  run; the price does.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    _pymetis()
    return partitioning.best(problem, _propose)


def partition(
    graph: group_graph.GroupGraph, num_parts: int, *,
    shares: np.ndarray | None = None, imbalance: float = _IMBALANCE,
    seeds: Iterable[int] = range(-1, 15)
) -> np.ndarray:
  """int [V], the part of each vertex in the best of several cuts.

  A cut within the allowed imbalance is better than one beyond it, and a smaller
  excess is better. Of equals, the cut with the fewest bytes wins.

  Args:
    graph: V vertices.
    num_parts: k.
    shares: float64 [k], share of the weight that each part should get; equal by
      default.
    imbalance: Allowed excess of a part, as a share of its weight.
    seeds: Seeds of k-way partitioning and of recursive bisection; -1 is the
      library's default seed.

  Raises:
    GdpError: pymetis is not installed.
  """
  shares, _ = partitioning.completed(graph, num_parts, shares, None)
  # The imbalance of the caller, and the library's defaults.
  limits = {
      *_ufactors(imbalance, num_parts), (False, _DEFAULT_UFACTORS[False]),
      (True, _DEFAULT_UFACTORS[True])
  }
  cuts = [
      _cut(graph, shares, recursive, ufactor, seed) for seed in seeds
      for recursive, ufactor in sorted(limits)
  ]
  return min(
      cuts, key=lambda parts:
      (partitioning.excess(graph, parts, shares, imbalance), graph.cut(parts)))


def cut(graph: group_graph.GroupGraph, shares: np.ndarray) -> np.ndarray:
  """int [V], the part of each vertex in one k-way cut.

  Args:
    graph: V vertices.
    shares: float64 [k], share of the weight that each part should get; sum 1.

  Raises:
    GdpError: pymetis is not installed.
  """
  return _cut(graph, shares, False, _DEFAULT_UFACTORS[False], -1)


def few(problem: placer_lib.Problem, most: int) -> np.ndarray:
  """int32 [at most `most`, G], legal placements by one cut each.

  All accelerators come first, then half of them, edges with and without the
  latency of a message.

  Args:
    problem: G groups.
    most: How many to make.

  Raises:
    GdpError: pymetis is not installed.
  """
  targets = [
      target for target in partitioning.make_targets(problem, 0.)
      if target.num_workers > 1
  ][:most]
  rows = [
      partitioning.repair(
          problem, target.graph,
          _proposal(problem, target, _IMBALANCE, problem.seed, False).devices)
      for target in targets
  ]
  return np.array(rows, np.int32).reshape(-1, problem.graph.num_groups)


def _propose(problem: placer_lib.Problem, memory: float,
             see: partitioning.See) -> None:
  """Tries several numbers of devices, then cuts for the best of them."""
  targets = partitioning.make_targets(problem, memory, with_all=True)
  winner = see(
      _proposal(problem, target, _IMBALANCE, problem.seed, False)
      for target in targets)
  near = partitioning.like(winner, targets, problem)
  see(
      _proposal(problem, target, imbalance, problem.seed + seed, recursive)
      for target in near for imbalance, seed, recursive in (
          *((i, 0, False) for i in _IMBALANCES),
          *((_IMBALANCE, s, False) for s in range(1, _NUM_SEEDS)),
          *((i, 0, True) for i in (_IMBALANCE, *_IMBALANCES[1:]))))


def _proposal(problem: placer_lib.Problem, target: partitioning.Target,
              imbalance: float, seed: int,
              recursive: bool) -> partitioning.Proposal:
  ufactor = dict(_ufactors(imbalance, target.num_workers))[recursive]
  parts = _cut(_without_fixed(target), target.worker_shares, recursive, ufactor,
               seed)
  outside = target.fixed >= target.num_workers
  parts = arrangement.arrange(np.where(outside, target.fixed, parts), target,
                              problem.allowed)
  return partitioning.Proposal(target.devices[parts], target)


def _without_fixed(target: partitioning.Target) -> group_graph.GroupGraph:
  """The graph without the nets of groups that may be on no worker."""
  graph = target.graph
  outside = target.fixed >= target.num_workers
  return graph.with_pins(~outside) if outside.any() else graph


def _ufactors(imbalance: float, num_parts: int) -> list[tuple[bool, int]]:
  """The `ufactor` of METIS for an imbalance, in thousandths.

  One for k-way partitioning (False), one for recursive bisection (True). The
  levels of recursive bisection divide the allowed imbalance.
  """
  levels = max(int(np.ceil(np.log2(num_parts))), 1)
  return [
      (recursive,
       max(
           int(
               round(1000 *
                     ((1 + imbalance)**(1 /
                                        (levels if recursive else 1)) - 1))),
           1)) for recursive in (False, True)
  ]


def _cut(graph: group_graph.GroupGraph, shares: np.ndarray, recursive: bool,
         ufactor: int, seed: int) -> np.ndarray:
  """int [V], by one call of METIS."""
  count = len(shares)
  if count == 1 or not graph.num_vertices:
    return np.zeros(graph.num_vertices, int)
  pymetis = _pymetis()
  starts, neighbours, _ = graph.adjacency
  # METIS prints a warning if a part is empty.
  with partition_process.stdout_dropped():
    _, parts = pymetis.part_graph(
        count, pymetis.CSRAdjacency(starts, neighbours),
        vweights=graph.integer_weights, eweights=graph.integer_edges,
        tpwgts=_exact(shares), recursive=recursive,
        options=pymetis.Options(seed=min(int(seed), (1 << 31) - 1),
                                ufactor=ufactor))
  return np.array(parts, int)


def _exact(shares: np.ndarray) -> list[float]:
  """Positive shares whose sum is 1 within the tolerance of METIS."""
  shares = np.maximum(shares, 1e-6)
  return (shares / shares.sum()).tolist()


def _pymetis() -> types.ModuleType:
  extras.require('The placer "metis"', 'pymetis')
  import pymetis
  return pymetis
