"""Balanced minimum cuts over the GPUs: the baseline "MinCut".

A. Mirhoseini et al.: A hierarchical model for device placement. ICLR 2018,
section 3.2.
"""

from __future__ import annotations

import functools

from gdp_grappler import deadlines
from gdp_grappler import extras
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import partitioning
from gdp_grappler.placers.partitioning import scotch

# Allowed excess of a part, as a share of its weight; each is tried.
_IMBALANCES = (0.01, 0.05, 0.2, 0.5)
# Number of seeds that are tried.
_NUM_SEEDS = 3
# Largest number of vertices of all cuts of one round together. It limits the
# time of a large graph to seconds.
_MOST_VERTICES = 1_000_000


class MinCutPlacer:
  """The best by price of many cuts into one part for each GPU.

  As in the paper, Scotch minimises the bytes between parts, with one part for
  each GPU. Each part has work in proportion to the speed of its GPU. All cut
  bytes cost the same. Afterwards the parts are assigned to devices by the links
  between devices. If there is no GPU, all CPUs take part. Groups that may be on
  no GPU are fixed to their fastest device. The placer tries several balances,
  several orders of the vertices, and edges with and without the latency of a
  message. It also prices single devices.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    extras.require('The placer "min_cut"', 'scotchpy')
    return partitioning.best(
        problem, functools.partial(_propose, problem, problem.deadline()))


def _propose(problem: placer_lib.Problem, deadline: deadlines.Deadline,
             memory: float, price: partitioning.PriceProposals) -> None:
  """One round of proposals."""
  seconds = problem.busy_seconds
  accelerators = partitioning.accelerators(problem.cluster, seconds)
  latency = partitioning.message_bytes(problem.cluster, accelerators)
  targets = [
      partitioning.make_target(
          problem, accelerators,
          group_graph.build(problem.graph, seconds, accelerators, size), memory)
      for size in ((latency, 0.) if len(accelerators) > 1 else (0.,))
  ]
  jobs = [(target, scotch.arguments(imbalance, problem.seed + seed, balanced))
          for seed in range(_NUM_SEEDS) for imbalance in _IMBALANCES
          for balanced in ((True, False) if not seed else (True,))
          for target in targets]
  mapper = scotch.mapper('min_cut', _MOST_VERTICES, topology=False)
  price(mapper.map(problem, jobs, deadline))
