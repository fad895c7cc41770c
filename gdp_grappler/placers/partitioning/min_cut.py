"""Balanced minimum cuts over the GPUs: the baseline "MinCut".

A. Mirhoseini et al.: A hierarchical model for device placement. ICLR 2018,
section 3.2.
"""

from __future__ import annotations

from gdp_grappler import extras
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.placers.partitioning import scotch

_IMBALANCES = (0.01, 0.05, 0.2, 0.5)
_NUM_SEEDS = 3
# Of all cuts together, so that large graphs take seconds.
_MOST_VERTICES = 1_000_000


class MinCutPlacer:
  """The best by price of many cuts into one part for each GPU.

  As the paper has it: the optimizer is Scotch, only GPUs are considered, and
  the computation is balanced across all of them while little is communicated.
  So all GPUs are in use (or all CPUs where there is no GPU), each in
  proportion to its speed, and all bytes that cross cost the same; the parts
  are then arranged to suit the links. Groups that no GPU may hold are fixed to
  the CPU. Tried are several balances, numberings of the vertices, and edges
  with and without the latency of a message; in the end, each device alone.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    extras.require('The placer "min_cut"', 'scotchpy')
    return partitioning.best(problem, _propose)


def _propose(problem: placer_lib.Problem, memory: float,
             see: partitioning.See) -> None:
  """One round of proposals."""
  accelerators = partitioning.accelerators(problem)
  latency = partitioning.message_bytes(problem.cluster, accelerators)
  targets = [
      partitioning.make_target(problem, accelerators,
                               group_graph.build(problem, accelerators, size),
                               memory)
      for size in ((latency, 0.) if len(accelerators) > 1 else (0.,))
  ]
  most = max(_MOST_VERTICES // max(problem.graph.num_groups, 1), 2)
  see(
      scotch.map_targets([
          (target, imbalance, problem.seed + seed, balanced)
          for seed in range(_NUM_SEEDS) for imbalance in _IMBALANCES
          for balanced in ((True, False) if not seed else (True,))
          for target in targets
      ][:most], problem.allowed, topology=False))
