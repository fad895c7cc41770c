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

_IMBALANCE = 0.03  # As the library has it.
_DEFAULT_UFACTORS = {False: 30, True: 1}
_IMBALANCES = (0.005, 0.1, 0.3, 1.)
_NUM_SEEDS = 3


class MetisPlacer:
  """The best by price of many cuts, one part per device in use.

  Vertices are groups weighted by seconds, edges are weighted by bytes. Parts
  get work in proportion to the speed of their device. Tried are all numbers of
  accelerators (or of CPUs where there is none) and all devices together, edges
  with and without the latency of a message; then, on the devices that did
  best, recursive bisection, looser and tighter balance and other seeds. Groups
  that may be on none of the devices do not take part in the cut. Of the order
  of execution METIS knows nothing; the price does.
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
  """int [V], the part of each vertex in the lightest of several cuts.

  Cuts that keep the balance come first; if none does, the most balanced wins.

  Args:
    graph: V vertices.
    num_parts: k.
    shares: float64 [k], weight that each part should get; equal by default.
    imbalance: How much more a part may get.
    seeds: Of k-way partitioning and of recursive bisection; -1 is the
      library's own.

  Raises:
    GdpError: pymetis is not installed.
  """
  shares, _ = partitioning.completed(graph, num_parts, shares, None)
  # As asked for, and as the library does it by itself.
  limits = {
      *_ufactors(imbalance, num_parts), (False, _DEFAULT_UFACTORS[False]),
      (True, _DEFAULT_UFACTORS[True])
  }
  found = [
      _cut(graph, shares, recursive, ufactor, seed) for seed in seeds
      for recursive, ufactor in sorted(limits)
  ]
  return min(
      found, key=lambda parts:
      (partitioning.excess(graph, parts, shares, imbalance), graph.cut(parts)))


def cut(graph: group_graph.GroupGraph, shares: np.ndarray) -> np.ndarray:
  """int [V], the part of each vertex in one k-way cut.

  Args:
    graph: V vertices.
    shares: float64 [k], weight that each part should get; sum 1.

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
  """Rounds of proposals: how many devices, then which cut."""
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
  """The graph without the nets of what can be on no worker."""
  graph = target.graph
  outside = target.fixed >= target.num_workers
  return graph.with_pins(~outside) if outside.any() else graph


def _ufactors(imbalance: float, num_parts: int) -> list[tuple[bool, int]]:
  """How METIS is told an imbalance, k-way and by recursive bisection.

  In thousandths; what all bisections may lose is divided among their levels.
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
  # It complains of parts that stay empty.
  with partition_process.stdout_dropped():
    _, parts = pymetis.part_graph(
        count, pymetis.CSRAdjacency(starts, neighbours),
        vweights=graph.integer_weights, eweights=graph.integer_edges,
        tpwgts=_exact(shares), recursive=recursive,
        options=pymetis.Options(seed=min(int(seed), (1 << 31) - 1),
                                ufactor=ufactor))
  return np.array(parts, int)


def _exact(shares: np.ndarray) -> list[float]:
  """Positive, with a sum of 1 to the last bit that METIS looks at."""
  shares = np.maximum(shares, 1e-6)
  return (shares / shares.sum()).tolist()


def _pymetis() -> types.ModuleType:
  extras.require('The placer "metis"', 'pymetis')
  import pymetis
  return pymetis
