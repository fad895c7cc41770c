"""One quick schedule as a start of the default placer's search.

On wide graphs that no layers divide, a schedule of m-ETF may be much faster
than all that `gdp_policy` and the anchors find in a short time. METIS cuts such
graphs badly.
"""

from __future__ import annotations

import math

from gdp_grappler import progress as progress_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_time

# The placer of the schedule, and the source of the placement.
PLACER = 'm_etf_published'
# Seconds of this placer per op and device. On most graphs it takes half of
# them. It has no deadline, so it runs only if it takes a part of the time.
_OP_S = 1e-6
# Share of the time of the whole search that is a small part.
SMALL = .2


def add(problem: placer_lib.Problem, priced: priced_placements.PricedPlacements,
        share: float) -> bool:
  """Adds a schedule if it is the best placement so far.

  A worse schedule would be a poor start of a short annealing.

  Args:
    problem: The problem to place.
    priced: Placements, at least one; may get the schedule.
    share: Share of the time of the whole search that the schedule may take.

  Returns:
    Whether a schedule was made. There is none if there is too little time, or
    if steps are measured.
  """
  seconds = _OP_S * problem.graph.num_ops * problem.cluster.num_devices
  if (not problem.evaluator.simulated or
      seconds > share * search_time.budget_s(problem)):
    return False
  progress_lib.doing('making a schedule')
  schedule = registry.create(PLACER).place(problem)
  priced.add_if_best(schedule.devices[problem.graph.first_ops], PLACER)
  return True


def is_wanted(priced: priced_placements.PricedPlacements, alone_s: float,
              bound_s: float) -> bool:
  """Whether a schedule should be made even if it takes much of the time.

  It should if no placement is good. The step of a good placement is at most the
  geometric mean of `alone_s` and `bound_s`.

  Args:
    priced: The placements so far.
    alone_s: Step of the best single device; infinite if none has room.
    bound_s: Lower bound of the step.
  """
  seconds = priced.prices.valid_seconds.min()
  return not priced.fits or bool(seconds > math.sqrt(alone_s * bound_s))
