"""Searches a smaller problem first, for where a search in order may begin.

As partitioners coarsen a graph and refine what they find in the small one
(Hendrickson and Leland, "A multilevel algorithm for partitioning graphs",
Supercomputing 1995). Whole time steps of layers move, ten times as many are
priced, and where a search ends in part by luck, several can race.
"""

from __future__ import annotations

import math
from typing import Callable

import numpy as np

from gdp_grappler.placers import coarse_problem
from gdp_grappler.placers import local_search
from gdp_grappler.placers import move_model
from gdp_grappler.placers import moves as moves_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import prioritized
from gdp_grappler.placers import races

# Of the time of a whole search, and the least seconds in which it finds some.
SHARE, _LEAST_S = .35, 1.
# Smaller graphs are priced quickly as they are.
_FEWEST_OPS = 10_000
# How many race, and whose best placements are told of.
_RACERS, _TOLD = 3, 2

Models = Callable[[placer_lib.Problem], move_model.MoveModel | None]


def coarsened(problem: placer_lib.Problem,
              seconds: float = math.inf) -> coarse_problem.CoarseProblem | None:
  """The smaller problem; None if there is none or a search of it would not pay.

  Args:
    problem: G groups.
    seconds: That the search would have.
  """
  if (seconds < _LEAST_S or problem.graph.num_ops < _FEWEST_OPS or
      not prioritized.pays(problem)):
    return None
  return coarse_problem.of(problem)


def in_order(coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
             rng: np.random.Generator, limit: local_search.Limit,
             models: Models) -> np.ndarray:
  """int32 [K, G], likely fast in order, the best in the small problem first.

  Args:
    coarse: Of G groups.
    starts: int [S, G], where to begin.
    rng: Of the searches.
    limit: Of all of them.
    models: Choose the steps of one search in a problem.
  """
  problem = coarse.problem
  rows = np.unique(coarse.projected(starts), axis=0)
  prices = problem.evaluator.price_groups(problem.graph, rows)
  rows = rows[prices.ranking()[:prioritized.STARTS]]
  first, moves = problem.graph.first_ops, moves_lib.Moves(problem)
  found: list[prioritized.PrioritizedSearch] = []
  for part in races.Phase().parts(_RACERS):
    found.insert(
        0,
        prioritized.PrioritizedSearch(problem, rows, rng, models(problem),
                                      moves))
    # The others have the same start, the best in order.
    rows = found[0].starts[0].devices[None, first]
    local_search.run(found, limit, part)
    if limit.progress(sum(search.evaluations for search in found)) >= 1:
      break
  ranked = sorted(found, key=lambda search: search.best_key)[:_TOLD]
  return coarse.spread(np.stack([s.best.devices[first] for s in ranked]))
