"""Searches a smaller problem first, for where a search in order may begin.

As partitioners coarsen a graph and refine what they find in the small one
(Hendrickson and Leland, "A multilevel algorithm for partitioning graphs",
Supercomputing 1995). First whole layers move, of which there are so few that
where they are best is found in about a second, then time steps of layers. Ten
times as many placements are priced as in the graph itself, and where a search
ends in part by luck, several can race.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import Callable, Sequence

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
# What moves first, in searches of so many placements, or of so much of the time
# where that is shorter, until so much of it is over. A network that chooses
# moves takes longer than to price them, and there are few.
_WHOLES = 'group', 'slab_whole', 'slab_trade'
_PRICED, _ROUND, _OF_WHOLES = 1500, .35, .7
# Two of them whose best differ by no more have found what there is, if the last
# one has priced so many.
_ALIKE, _FEWEST_PRICED = 3e-4, 500
# Of whose best placements is told.
_TOLD = 16

Models = Callable[[placer_lib.Problem], move_model.MoveModel | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Ahead:
  """What a search of a smaller problem says of a larger one.

  Attributes:
    rows: int32 [K, G], placements, none twice; at least one.
    progress: What it took of its time, from 0 to 1.
  """

  rows: np.ndarray
  progress: float


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
             models: Models) -> Ahead:
  """Placements that are likely fast in order.

  All are worth a price in the graph itself: what takes as long in the small
  problem, to a percent, takes up to a tenth longer there or less.

  Args:
    coarse: Of G groups.
    starts: int [S, G], where to begin.
    rng: Of the searches.
    limit: Of all of them.
    models: Choose the steps of the last one, in a problem.
  """
  whole = _Searches(coarse.wholes(), starts, rng, limit, _WHOLES)
  while not whole.found or whole.progress < _OF_WHOLES and not whole.settled:
    left = max(_OF_WHOLES - whole.progress, 0.)
    whole.search(min(_ROUND, left), _PRICED)
  rows, progress = whole.best(), whole.progress
  if progress < 1:
    single = _Searches(coarse, np.concatenate([starts, rows]), rng, limit,
                       moves_lib.Moves.kinds, whole.evaluations)
    single.search(min(1 - _OF_WHOLES, 1 - single.progress),
                  model=models(coarse.problem))
    rows, progress = np.concatenate([single.best(), rows]), single.progress
  first = np.unique(rows, axis=0, return_index=True)[1]
  return Ahead(rows[np.sort(first)][:_TOLD], min(progress, 1.))


class _Searches:
  """Searches in order from the same starts, one after the other.

  Attributes:
    found: What they were, in turn.
    evaluations: Placements priced so far, by others before them, too.
  """

  def __init__(self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
               rng: np.random.Generator, limit: local_search.Limit,
               kinds: Sequence[str], evaluations: int = 0) -> None:
    """Prices the starts, int [S, G], first in, first out."""
    self._coarse, self._rng, self._limit = coarse, rng, limit
    self.evaluations = evaluations
    self.found: list[prioritized.PrioritizedSearch] = []
    problem = coarse.problem
    rows = np.unique(coarse.projected(starts), axis=0)
    prices = problem.evaluator.price_groups(problem.graph, rows)
    self._rows = rows[prices.ranking()[:prioritized.STARTS]]
    self._moves = moves_lib.Moves(problem, kinds)

  @property
  def progress(self) -> float:
    """Of all that there is time for, from 0 to 1, or more."""
    return self._limit.progress(self.evaluations)

  @property
  def settled(self) -> bool:
    """Whether the last one found nothing but what was known, or could not."""
    search = self.found[-1]
    if not search.can_move:
      return True
    *before, last = [search.best_key[-1] for search in self.found]
    return (search.evaluations >= _FEWEST_PRICED and bool(before) and
            abs(last - min(before)) <= _ALIKE * last)

  def search(self, share: float, most: int = sys.maxsize,
             model: move_model.MoveModel | None = None) -> None:
    """Ends after such a share of the time, or so many placements."""
    search = prioritized.PrioritizedSearch(self._coarse.problem, self._rows,
                                           self._rng, model, self._moves)
    local_search.run([search], self._limit.part(share, most), races.Phase())
    self.found.append(search)
    self.evaluations += search.evaluations

  def best(self) -> np.ndarray:
    """int32 [K, G], what each found, the best first."""
    first = self._coarse.problem.graph.first_ops
    ranked = sorted(self.found, key=lambda search: search.best_key)
    return self._coarse.spread(
        np.stack([search.best.devices[first] for search in ranked]))
