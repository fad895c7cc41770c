"""Balanced minimum cuts by METIS.

G. Karypis and V. Kumar: A fast and high quality multilevel scheme for
partitioning irregular graphs. SIAM Journal on Scientific Computing 20 (1),
1998, 359-392; and Multilevel k-way partitioning scheme for irregular graphs.
Journal of Parallel and Distributed Computing 48 (1), 1998, 96-129.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Iterator, Sequence

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
# The library's default `ufactor` of k-way partitioning, in thousandths.
_DEFAULT_UFACTOR = 30
# Further allowed excesses that are tried.
_IMBALANCES = (0.005, 0.1, 0.3, 1.)
# Number of seeds that are tried.
_NUM_SEEDS = 3
# Seeds of METIS are below this number. A seed below 0 means the default seed.
# The seeds 0 and 1 are one seed, because C's `srand` takes them for one.
_SEEDS = 1 << 31


@dataclasses.dataclass(frozen=True)
class _Cut:
  """Arguments of one cut.

  Attributes:
    imbalance: Allowed excess of a part, as a share of its weight.
    seed: Added to the seed of the problem.
    recursive: Whether METIS bisects recursively.
    latency: Only for `few_cuts`: whether the latency of a message counts as
      bytes of an edge.
    half: Only for `few_cuts`: whether half of the accelerators take part, and
      not all of them.
  """

  imbalance: float = _IMBALANCE
  seed: int = 0
  recursive: bool = False
  latency: bool = True
  half: bool = False


# Cuts for the devices of the best proposal.
_FURTHER = (*(_Cut(imbalance) for imbalance in _IMBALANCES),
            *(_Cut(seed=seed) for seed in range(1, _NUM_SEEDS)),
            *(_Cut(imbalance, recursive=True)
              for imbalance in (_IMBALANCE, *_IMBALANCES[1:])))

# Cuts of `few_cuts` in greedy order: each cut improves the most on maps of
# coordinates, list schedules and the cuts before it
# (docs/results/experiments.md).
_FEW = (
    _Cut(),
    _Cut(.3, seed=1, latency=False),
    _Cut(recursive=True),
    _Cut(1., recursive=True),
    _Cut(seed=1, latency=False),
    _Cut(.3, recursive=True),
    _Cut(.1, seed=1),
    _Cut(half=True),
)


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

    def propose(targets: Sequence[partitioning.Target],
                cuts: Sequence[_Cut]) -> Iterator[partitioning.Proposal]:
      return (_proposal(target, problem.allowed, problem.seed, how)
              for target in targets for how in cuts)

    return partitioning.best_of_two_rounds(
        problem, functools.partial(propose, cuts=[_Cut()]),
        functools.partial(propose, cuts=_FURTHER))


def cut(graph: group_graph.GroupGraph, shares: np.ndarray) -> np.ndarray:
  """int [V], the part of each vertex in one k-way cut.

  Args:
    graph: V vertices.
    shares: float64 [k], share of the weight that each part should get, as a
      multiple of one number.

  Raises:
    GdpError: pymetis is not installed.
  """
  return _cut(graph, shares / shares.sum(), False, _DEFAULT_UFACTOR, -1)


def few_cuts(problem: placer_lib.Problem) -> Iterator[np.ndarray]:
  """Legal placements int32 [G] by one cut each, the best cuts first.

  Args:
    problem: G groups.

  Raises:
    GdpError: pymetis is not installed.
  """
  every = len(partitioning.accelerators(problem.cluster, problem.busy_seconds))
  half = -(-every // 2)
  targets: dict[int, list[partitioning.Target]] = {}
  for target in partitioning.make_targets(problem, counts=[every, half]):
    targets.setdefault(target.num_workers, []).append(target)
  for each in _FEW:
    count = half if each.half else every
    if count > 1:
      with_latency, without = targets[count][:2]
      target = with_latency if each.latency else without
      proposal = _proposal(target, problem.allowed, problem.seed, each)
      yield partitioning.cheapest_legal(problem, target.graph,
                                        proposal.devices).astype(np.int32)


def _proposal(target: partitioning.Target, allowed: np.ndarray, seed: int,
              how: _Cut) -> partitioning.Proposal:
  ufactor = _ufactor(how.imbalance, target.num_workers, how.recursive)
  parts = _cut(_without_fixed(target), target.worker_shares, how.recursive,
               ufactor, seed + how.seed)
  outside = target.fixed >= target.num_workers
  parts = arrangement.arrange(np.where(outside, target.fixed, parts), target,
                              allowed)
  return partitioning.Proposal(target.devices[parts], target)


def _without_fixed(target: partitioning.Target) -> group_graph.GroupGraph:
  """The graph without the nets of groups that may be on no worker."""
  graph = target.graph
  outside = target.fixed >= target.num_workers
  return graph.with_pins(~outside) if outside.any() else graph


def _ufactor(imbalance: float, num_parts: int, recursive: bool) -> int:
  """The `ufactor` of METIS for an imbalance, in thousandths.

  The levels of recursive bisection divide the allowed imbalance.
  """
  levels = max(int(np.ceil(np.log2(num_parts))), 1) if recursive else 1
  return max(round(1000 * ((1 + imbalance)**(1 / levels) - 1)), 1)


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
        count, pymetis.CSRAdjacency(starts,
                                    neighbours), vweights=graph.integer_weights,
        eweights=graph.integer_edges, tpwgts=_exact(shares),
        recursive=recursive, options=pymetis.Options(seed=_library_seed(seed),
                                                     ufactor=ufactor))
  return np.array(parts, int)


def _library_seed(seed: int) -> int:
  """The seed for METIS: -1 for a negative seed, else a positive number."""
  return 1 + int(seed) % (_SEEDS - 1) if seed >= 0 else -1


def _exact(shares: np.ndarray) -> list[float]:
  """Positive shares whose sum is 1 within the tolerance of METIS."""
  shares = np.maximum(shares, 1e-6)
  return (shares / shares.sum()).tolist()


def _pymetis() -> types.ModuleType:
  extras.require('The placer "metis"', 'pymetis')
  import pymetis
  return pymetis
