"""Finds placements that fit if the placements of a placer overflow a memory."""

from __future__ import annotations

from gdp_grappler import deadlines
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.memory import memory_repair


def repair_faster(problem: placer_lib.Problem,
                  priced: priced_placements.PricedPlacements,
                  deadline: deadlines.Deadline) -> None:
  """Repairs placements that overflow but are faster than all that fit.

  Args:
    problem: G groups.
    priced: Placements of the groups; gets the repaired ones.
    deadline: After this time, only the first repair begins.
  """
  priced.add(
      memory_repair.MemoryRepair(problem).fitted(
          priced.faster_overflowing(search_config.DEFAULT.fit.repaired),
          deadline))


def best_fitting(problem: placer_lib.Problem,
                 priced: priced_placements.PricedPlacements,
                 deadline: deadlines.Deadline) -> placement_lib.Placement:
  """The best placement, after three more sources of placements.

  The function prices all ops on one device, for each kind of device. It repairs
  placements that overflow a memory but are faster than all that fit. If no
  placement fits after that, and if prices are simulated, a local search starts
  with the best one.

  Args:
    problem: G groups.
    priced: Placements of the groups; gets further ones.
    deadline: End of the repair and of the search.
  """
  priced.add(
      one_device.of_each_kind(problem.cluster, problem.allowed,
                              problem.op_seconds))
  if not priced.fastest_fits:
    repair_faster(problem, priced, deadline)
  if not priced.fits and problem.evaluator.simulated:
    priced.add(
        [annealing.find_fitting(problem, priced.best, deadline=deadline)])
  return placement_lib.from_groups(problem.graph, priced.best, problem.cluster)
