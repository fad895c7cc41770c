"""A multilevel search: a smaller problem first, then the graph itself.

Partitioners work in the same way: a partitioner coarsens a graph, cuts the
small graph and refines the cut in the large one (Hendrickson and Leland, "A
multilevel algorithm for partitioning graphs", Supercomputing 1995). The
placements that the search of the small problem finds are starts of an annealing
of the graph itself, which prices placements in the order of priorities.

A group of the small problem is a tile: the ops of one layer in one time step.
The search of the small problem has three levels:

1. Whole layers move. There are few layers, so an annealing converges fast.
2. Parts of recurrent layers move. The products of a recurrent layer with its
   input form one part. The products with its state form a second part. The
   first part may be on another device than the second part, which it feeds.
3. Single tiles move.

A price in the small problem takes a fraction of a price in the graph, so this
search prices many more placements in the same time. The result of one annealing
depends on its random numbers. So each level runs several annealings, one after
the other. The results of all annealings are kept, and a level begins with the
best results of the levels before.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Sequence

import numpy as np

from gdp_grappler import progress as progress_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import coarse_problem
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import moves as moves_lib

# Kinds of moves of whole layers and of parts of layers. No network chooses
# among these moves: there are few of them, and the network would take longer
# than their prices.
_WHOLES = 'group', 'coordinate_whole', 'coordinate_trade'

# The key that ranks a placement, and the devices of its groups, int32 [G].
_Ranked = tuple[evaluator_lib.Key, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class CoarseResult:
  """Placements of a large problem that the search of the small one found.

  Attributes:
    rows: int32 [K, G], different placements, the best first; at least one.
    progress: Share of its budget that the search has spent, from 0 to 1.
  """

  rows: np.ndarray
  progress: float


@dataclasses.dataclass(frozen=True, eq=False)
class _Level:
  """A level of the search.

  Attributes:
    coarse: The problem whose groups move.
    until: Progress of the search of the small problem, from 0 to 1, at which
      the level ends.
    kinds: Kinds of moves.
    models: Makes the model that scores the moves.
  """

  coarse: coarse_problem.CoarseProblem
  until: float
  kinds: Sequence[str] = _WHOLES
  models: staged_search.Models = staged_search.no_model


def is_worth(seconds: float) -> bool:
  """Whether a search of the small problem pays if it may take `seconds`."""
  return seconds >= search_config.DEFAULT.coarse.least_s


def coarsened(problem: placer_lib.Problem,
              seconds: float = math.inf) -> coarse_problem.CoarseProblem | None:
  """The smaller problem; None if there is none, or if its search does not pay.

  Args:
    problem: G groups.
    seconds: Time of the search of the smaller problem.
  """
  if (not is_worth(seconds) or
      problem.graph.num_ops < search_config.DEFAULT.coarse.fewest_ops or
      not problem.orders_pay):
    return None
  return coarse_problem.of(problem)


def search(coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
           rng: np.random.Generator, budget: search_budget.SearchBudget,
           models: staged_search.Models) -> CoarseResult:
  """Placements that are likely to be fast once control edges order the ops.

  The caller should price every placement in the graph itself: placements that
  are equally fast in the small problem may differ there.

  Args:
    coarse: The smaller problem of a problem with G groups.
    starts: int [S, G], placements with which the annealings begin.
    rng: Random numbers of all annealings.
    budget: Budget of all annealings together.
    models: Makes the model that scores the moves of tiles.
  """
  config = search_config.DEFAULT.coarse
  found: list[_Ranked] = []
  evaluations = 0
  for level in _levels(coarse, starts, models):
    problem = level.coarse.problem
    rows = _starts(level.coarse, starts, found)
    moves = moves_lib.Moves(problem, level.kinds)
    # Even if no time is left, the first annealing prices its starts. So there
    # is always a result.
    while not found or budget.progress(evaluations) < level.until:
      annealing = priority_annealing.PriorityAnnealing(problem, rows, rng,
                                                       level.models(problem),
                                                       moves)
      left = max(level.until - budget.progress(evaluations), 0.)
      staged_search.anneal([annealing], budget.part(min(left, config.round)),
                           reports=False)
      evaluations += annealing.evaluations
      best = annealing.best.devices[problem.graph.first_ops]
      found.append((annealing.best_key, level.coarse.spread(best[None])[0]))
      progress_lib.reached(min(budget.progress(evaluations), 1.))
      if not annealing.can_move:
        break
  return CoarseResult(_select_starts(found),
                      min(budget.progress(evaluations), 1.))


def _levels(coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
            models: staged_search.Models) -> list[_Level]:
  """The levels that pay, in the order in which they run.

  Args:
    coarse: The smaller problem of a problem with G groups.
    starts: int [S, G], placements with which the annealings begin.
    models: Makes the model that scores the moves of tiles.
  """
  config = search_config.DEFAULT.coarse
  layers = coarse.wholes()
  if _are_slow(layers, coarse, starts):
    return [_Level(coarse, 1., moves_lib.Moves.kinds, models)]
  parted = coarse.parted() if config.parts_until > config.layers_until else None
  if parted is None:
    return [
        _Level(layers, config.parts_until),
        _Level(coarse, 1., moves_lib.Moves.kinds, models)
    ]
  return [
      _Level(layers, config.layers_until),
      _Level(parted.wholes(), config.parts_until),
      _Level(parted, 1., moves_lib.Moves.kinds, models)
  ]


def _are_slow(layers: coarse_problem.CoarseProblem,
              tiles: coarse_problem.CoarseProblem, starts: np.ndarray) -> bool:
  """Whether the best start gets much slower with each layer on one device.

  Args:
    layers: The small problem whose groups are layers.
    tiles: The small problem whose groups are tiles.
    starts: int [S, G], placements.
  """
  by_layers, by_tiles = (min(
      each.problem.evaluator.price_groups(each.problem.graph,
                                          each.projected(starts)).keys())
                         for each in (layers, tiles))
  most_s = search_config.DEFAULT.coarse.most_slowdown * by_tiles[-1]
  return by_layers[:-1] >= by_tiles[:-1] and by_layers[-1] >= most_s


def _starts(coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
            found: Sequence[_Ranked]) -> np.ndarray:
  """int32 [K, C], placements with which the annealings of a level begin.

  Args:
    coarse: The problem of the level, with C groups.
    starts: int [S, G], placements; the best few by FIFO prices are starts.
    found: Results of the levels before; the best few are starts, too.
  """
  config, problem = search_config.DEFAULT, coarse.problem
  rows = np.unique(coarse.projected(starts), axis=0)
  prices = problem.evaluator.price_groups(problem.graph, rows)
  best = rows[prices.ranking()[:config.start.best]]
  further = sorted(found, key=operator.itemgetter(0))[:config.coarse.further]
  return np.concatenate(
      [*(coarse.projected(row[None]) for _, row in further), best])


def _select_starts(ranked: Sequence[_Ranked]) -> np.ndarray:
  """int32 [K, G], the placements to price in the graph, the best first."""
  config = search_config.DEFAULT.coarse
  ranked = sorted(ranked, key=operator.itemgetter(0))
  best = ranked[0][0]
  rows = {
      row.tobytes(): row for key, row in ranked
      if key[:-1] == best[:-1] and key[-1] <= config.slowest * best[-1]
  }
  return np.stack(list(rows.values())[:config.passed_on])
