"""Seconds of the parts of a search, and the prices that stand for seconds."""

from __future__ import annotations

import math
import sys

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config

# A graph with 2 to the power of this number of placements, or more, has too
# many placements for a search to price all of them.
_MOST_DOUBLINGS = 40


def worth_s(problem: placer_lib.Problem, prices: evaluator_lib.Prices,
            bound_s: float) -> float:
  """Seconds that a search is worth if it begins with the best placement.

  No placement is faster than the lower bound `bound_s`. So the gain of a search
  is at most the step of the best placement so far, less the lower bound.
  """
  best, whole_s = prices.best(), budget_s(problem)
  if not prices.valid[best]:
    return whole_s  # A placement that runs is worth all of the time.
  gain_s = float(prices.seconds[best]) - bound_s
  return min(whole_s, max(search_config.DEFAULT.time.steps * gain_s, 0.))


def coarse_s(problem: placer_lib.Problem, all_s: float,
             deadline: deadlines.Deadline) -> float:
  """Seconds that the search of a smaller problem may take.

  Args:
    problem: The large problem.
    all_s: Seconds that all searches together are worth.
    deadline: End of all searches.
  """
  left_s = deadline.remaining_s
  if left_s and problem.ends_by_count:
    left_s = budget_s(problem)
  return search_config.DEFAULT.coarse.share * min(all_s, left_s)


def budget_s(problem: placer_lib.Problem) -> float:
  """Seconds of the whole search."""
  if problem.time_budget_s is None:
    return search_config.DEFAULT.time.budget_s
  return problem.time_budget_s


def limit(problem: placer_lib.Problem, search_s: float,
          left_s: float) -> search_budget.SearchBudget:
  """The budget of a search that begins now.

  If the user gave a time budget, the clock ends the search, after `search_s` or
  `left_s`. If there is no time budget, or if the result has to be repeatable, a
  number of prices that stands for `search_s` ends the search
  (`affordable`), and the clock only on a slow machine. If
  steps are measured, the clock ends the search in any case.

  Args:
    problem: G groups.
    search_s: Seconds that the search is worth.
    left_s: Seconds that are left.
  """
  count = evaluations_for(problem)
  seconds = min(left_s, search_s)
  if not problem.ends_by_count or not problem.evaluator.simulated:
    return search_budget.SearchBudget(count, seconds, clock=problem.clock)
  config = search_config.DEFAULT
  share = config.time.waited_for if problem.repeatable else 1.
  batch = config.annealing.batch
  count = min(affordable(problem, share * search_s), count) // batch * batch
  return search_budget.SearchBudget(count, seconds, config.time.grace,
                                    problem.clock)


def evaluations_for(problem: placer_lib.Problem) -> int:
  """Placements that a search prices by default.

  If the clock ends the search, the number is only limited by that of the legal
  placements. If the clock stands still (`Problem.by_count`), the number stands
  for the time budget. Without a budget the number is smaller for a large graph,
  and small if a price is a real step.

  Args:
    problem: The problem to place.
  """
  config = search_config.DEFAULT
  if problem.time_budget_s is not None and math.isfinite(problem.time_budget_s):
    if problem.by_count:
      return min(max(affordable(problem, problem.time_budget_s), 1),
                 _enough(problem))
    return _enough(problem)
  if not problem.evaluator.simulated:
    return config.measured
  priced = config.priced_ops // max(problem.graph.num_ops, 1)
  return min(max(priced, config.fewest), config.most, _enough(problem))


def _enough(problem: placer_lib.Problem) -> int:
  """Prices after which almost all placements of a tiny graph were tried."""
  config = search_config.DEFAULT
  doublings = np.log2(np.maximum(problem.allowed.sum(axis=1), 1)).sum()
  if not problem.evaluator.simulated or doublings >= _MOST_DOUBLINGS:
    return sys.maxsize
  return max(config.fewest, round(config.per_placement * 2**doublings))


def affordable(problem: placer_lib.Problem, seconds: float) -> int:
  """Number of prices that stands for a time; the same on all machines."""
  config = search_config.DEFAULT.time
  count = seconds * config.ops_per_s / (problem.graph.num_ops
                                        + config.drawn_ops)
  return int(min(count, sys.maxsize))
