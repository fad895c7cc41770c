"""Searches a smaller problem first, for where a search in order may begin.

As partitioners coarsen a graph and refine what they find in the small one
(Hendrickson and Leland, "A multilevel algorithm for partitioning graphs",
Supercomputing 1995). First whole layers move, of which there are so few that
where they are best is found in about a second, then their parts, such as the
products with the input of a recurrent layer, which feed those with its state
from any device, then time steps of these. Ten times as many placements are
priced as in the graph itself, and as a search ends in part by luck, there are
several, one after the other.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import sys
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import progress as progress_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import coarse_problem
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import moves as moves_lib

# Of the time of a whole search, and the least seconds in which it finds some.
SHARE, _LEAST_S = .35, 1.
# Smaller graphs are priced quickly as they are.
_FEWEST_OPS = 10_000
# What moves first, in searches of so many placements, or of so much of the time
# where that is shorter, until so much of it is over. A network that chooses
# moves takes longer than to price them, and there are few.
_WHOLES = 'group', 'slab_whole', 'slab_trade'
_PRICED, _ROUND, _OF_WHOLES = 1500, .35, .7
# Where layers have parts, these move as soon as layers have had one such search
# and so much of the time, until so much of it is over; not where there would be
# less than that for them.
_OF_LAYERS, _OF_PARTS, _LEAST_PARTS = .35, .8, .1
# Two of them whose best differ by no more have found what there is, if the last
# one has priced so many.
_ALIKE, _FEWEST_PRICED = 3e-4, 500
# Layers do not move where the best start takes so many times as long with each
# of them on one device; searches of them end where they find nothing faster.
# Where they find what is faster by so much, their time steps, which then bring
# little, move for so much of the time only.
_TORN, _FASTER, _SHORT = 1.5, 1.05, .1
# How many placements are told of, none that takes so many times as long as the
# best, and how many layers' places the search of their time steps begins with.
_TOLD, _FAR, _FURTHER = 16, 1.1, 4

Models = Callable[[placer_lib.Problem], move_model.MoveModel | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Ahead:
  """What a search of a smaller problem says of a larger one.

  Attributes:
    rows: int32 [K, G], placements, the best first, none twice; at least one.
    progress: What it took of its time, from 0 to 1.
  """

  rows: np.ndarray
  progress: float


def is_worth(seconds: float) -> bool:
  """Whether a search of so many seconds would pay."""
  return seconds >= _LEAST_S


def coarsened(problem: placer_lib.Problem,
              seconds: float = math.inf) -> coarse_problem.CoarseProblem | None:
  """The smaller problem; None if there is none or a search of it would not pay.

  Args:
    problem: G groups.
    seconds: That the search would have.
  """
  if (not is_worth(seconds) or problem.graph.num_ops < _FEWEST_OPS or
      not priority_annealing.pays(problem)):
    return None
  return coarse_problem.of(problem)


def in_order(coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
             rng: np.random.Generator, limit: search_budget.SearchBudget,
             models: Models) -> Ahead:
  """Placements that are likely fast in order.

  All are worth a price in the graph itself: those that take as long in the
  small problem, to a percent, may differ by ten percent there.

  Args:
    coarse: Of G groups.
    starts: int [S, G], where to begin.
    rng: Of the searches.
    limit: Of all of them.
    models: Choose the steps of those that move time steps, in a problem.
  """
  whole = _Searches(coarse.wholes(), starts, rng, limit, _WHOLES)
  start = _Searches(coarse, starts, rng, limit, moves_lib.Moves.kinds).first_key
  told: list[_Told] = []
  last = whole
  if not _is_behind(whole.first_key, start, _TORN):
    has_time = whole.progress < _OF_WHOLES - _LEAST_PARTS
    parted = coarse.parted() if has_time else None
    told = _of_wholes(whole, start,
                      _OF_WHOLES if parted is None else _OF_LAYERS)
    if parted is not None and whole.progress < _OF_WHOLES - _LEAST_PARTS:
      last = _Searches(parted.wholes(), starts, rng, limit, _WHOLES,
                       whole.evaluations, _rows(told))
      told = sorted(
          _of_wholes(last, start, _OF_PARTS) + told, key=operator.itemgetter(0))
      coarse = parted
  progress = last.progress
  if progress < 1 or not told:
    # Layers may be ahead by overflowing less: then cells have to make it fit.
    fits = bool(told) and not any(told[0][0][:-1])
    brief = fits and _is_behind(start, told[0][0], _FASTER)
    single = _Searches(coarse, starts, rng, limit, moves_lib.Moves.kinds,
                       last.evaluations, _rows(told))
    _of_cells(single, brief, models)
    told, progress = single.told() + told, single.progress
  return Ahead(_worth_telling(told), min(progress, 1.))


def _rows(told: Sequence[_Told]) -> list[np.ndarray]:
  """K of int32 [G], the best, where others begin."""
  return [row for _, row in told[:_FURTHER]]


_Told = tuple[evaluator_lib.Key, np.ndarray]


def _of_wholes(whole: _Searches, start: evaluator_lib.Key,
               until: float) -> list[_Told]:
  """What they find, the best first, as long as they beat a start.

  Args:
    whole: Searches that have not begun.
    start: What is to be beaten.
    until: Progress at which they end if one has priced all that it wanted; else
      they go on until `_OF_WHOLES`, at least.
  """
  last = max(until, _OF_WHOLES)
  while True:
    whole.search(max(min(_ROUND, last - whole.progress), 0.), _PRICED)
    told = whole.told()
    most = max(search.evaluations for search in whole.found)
    if (whole.progress >= (until if most >= _PRICED else last) or
        whole.settled or _is_behind(told[0][0], start)):
      return told


def _of_cells(single: _Searches, brief: bool, models: Models) -> None:
  """Lets time steps move, for all the time that is left or for a short one."""
  share = _SHORT if brief else _ROUND
  while not single.found or not brief and single.goes_on:
    single.search(max(min(share, 1 - single.progress), 0.), models=models)


def _is_behind(key: evaluator_lib.Key, other: evaluator_lib.Key,
               times: float = 1.) -> bool:
  """Whether it takes so many times as long, at least, and is no better else."""
  return key[:-1] >= other[:-1] and key[-1] >= times * other[-1]


def _worth_telling(told: Sequence[_Told]) -> np.ndarray:
  """int32 [K, G], the best first."""
  ranked = sorted(told, key=operator.itemgetter(0))
  best = ranked[0][0]
  rows = {
      row.tobytes(): row for key, row in ranked
      if key[:-1] == best[:-1] and key[-1] <= _FAR * best[-1]
  }
  return np.stack(list(rows.values())[:_TOLD])


class _Searches:
  """Searches in order from the same starts, one after the other.

  Attributes:
    found: What they were, in turn.
    evaluations: Placements priced so far, by others before them, too.
  """

  def __init__(
      self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
      rng: np.random.Generator, limit: search_budget.SearchBudget,
      kinds: Sequence[str], evaluations: int = 0,
      further: Sequence[np.ndarray] = ()) -> None:
    """Prices the starts, int [S, G], first in, first out.

    Args:
      coarse: Of G groups.
      starts: int [S, G], of which the best few are looked at in order.
      rng: Of the searches.
      limit: Of all of them.
      kinds: Of moves.
      evaluations: Placements that others have priced before.
      further: K of int [G], all of which are looked at in order, too.
    """
    self._coarse, self._rng, self._limit = coarse, rng, limit
    self.evaluations = evaluations
    self.found: list[priority_annealing.PriorityAnnealing] = []
    problem = coarse.problem
    rows = np.unique(coarse.projected(starts), axis=0)
    prices = problem.evaluator.price_groups(problem.graph, rows)
    best = prices.ranking()[:search_config.DEFAULT.priorities.starts]
    self._rows = rows[best]
    if further:
      self._rows = np.concatenate(
          [coarse.projected(np.stack(further)), self._rows])
    self._moves = moves_lib.Moves(problem, kinds)

  @property
  def progress(self) -> float:
    """Of all that there is time for, from 0 to 1, or more."""
    return self._limit.progress(self.evaluations)

  @property
  def first_key(self) -> evaluator_lib.Key:
    """What the best start ranks by, in order."""
    return self._first.best_key

  @property
  def goes_on(self) -> bool:
    """Whether there is time for another, which would find something else."""
    return self.progress < 1 and self.found[-1].can_move

  @property
  def settled(self) -> bool:
    """Whether the last one found nothing but what was known, or could not."""
    if not self.found[-1].can_move:
      return True
    *before, last = [search.best_key for search in self.found]
    if not before or self.found[-1].evaluations < _FEWEST_PRICED:
      return False
    best = min(before)
    return (last[:-1] == best[:-1] and
            abs(last[-1] - best[-1]) <= _ALIKE * last[-1])

  def search(self, share: float, most: int = sys.maxsize,
             models: Models = lambda problem: None) -> None:
    """Ends after such a share of the time, or so many placements."""
    model = models(self._coarse.problem)
    begun = not self.found and model is None
    search = self._first if begun else self._begun(model)
    staged_search.anneal([search], self._limit.part(share, most), reports=False)
    self.found.append(search)
    self.evaluations += search.evaluations
    progress_lib.reached(min(self.progress, 1.))

  @functools.cached_property
  def _first(self) -> priority_annealing.PriorityAnnealing:
    return self._begun()

  def _begun(
      self, model: move_model.MoveModel | None = None
  ) -> priority_annealing.PriorityAnnealing:
    return priority_annealing.PriorityAnnealing(self._coarse.problem,
                                                self._rows, self._rng, model,
                                                self._moves)

  def told(self) -> list[_Told]:
    """What each found, int32 [G], and what it ranks by; the best first."""
    first = self._coarse.problem.graph.first_ops
    ranked = sorted(self.found, key=lambda search: search.best_key)
    rows = self._coarse.spread(
        np.stack([search.best.devices[first] for search in ranked]))
    return [(search.best_key, row) for search, row in zip(ranked, rows)]
