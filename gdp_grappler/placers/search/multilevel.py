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
from gdp_grappler.placers.search import stages
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import moves as moves_lib

# Moves of whole layers and of parts. A network that chooses moves takes longer
# than to price them, and there are few.
_WHOLES = 'group', 'slab_whole', 'slab_trade'

# What a placement ranks by, and its devices, int32 [G].
_Told = tuple[evaluator_lib.Key, np.ndarray]

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


def is_worth(seconds: float,
             config: search_config.SearchConfig | None = None) -> bool:
  """Whether a search of so many seconds would pay."""
  return seconds >= (config or search_config.DEFAULT).coarse.least_s


def coarsened(
    problem: placer_lib.Problem, seconds: float = math.inf,
    config: search_config.SearchConfig | None = None
) -> coarse_problem.CoarseProblem | None:
  """The smaller problem; None if there is none or a search of it would not pay.

  Args:
    problem: G groups.
    seconds: That the search would have.
    config: Of the search; by default `search_config.DEFAULT`.
  """
  config = config or search_config.DEFAULT
  if (not is_worth(seconds, config) or
      problem.graph.num_ops < config.coarse.fewest_ops or
      not priority_annealing.pays(problem)):
    return None
  return coarse_problem.of(problem, config)


def in_order(coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
             rng: np.random.Generator, budget: search_budget.SearchBudget,
             models: Models) -> Ahead:
  """Placements that are likely fast in order.

  All are worth a price in the graph itself: those that take as long in the
  small problem, to a percent, may differ by ten percent there.

  Args:
    coarse: Of G groups.
    starts: int [S, G], where to begin.
    rng: Of the searches.
    budget: Of all of them.
    models: Choose the moves of time steps, in a problem.
  """
  search = _CoarseSearch(coarse, starts, rng, budget, models)
  for stage in stages.COARSE:
    search.run(stage)
  return search.ahead()


class _CoarseSearch:
  """A search by levels: what it knows, and how far it has come."""

  def __init__(self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
               rng: np.random.Generator, budget: search_budget.SearchBudget,
               models: Models) -> None:
    self._coarse, self._starts, self._rng = coarse, starts, rng
    self._budget, self._models = budget, models
    self._config = coarse.config.coarse
    layers = self._annealings(coarse.wholes(), _WHOLES)
    self._last = layers
    cells = self._annealings(coarse, moves_lib.Moves.kinds)
    self._start_key = cells.first_key
    self._moves_wholes = not _is_behind(layers.first_key, self._start_key,
                                        self._config.torn)
    self._told: list[_Told] = []
    self._parted: coarse_problem.CoarseProblem | None = None

  def run(self, stage: stages.Level) -> None:
    """Goes on until the stage ends, if there is anything to move in it."""
    if stage is stages.Level.CELLS:
      self._run_cells()
    elif self._moves_wholes:
      self._run_layers() if stage is stages.Level.LAYERS else self._run_parts()

  def ahead(self) -> Ahead:
    """What all stages found."""
    return Ahead(_worth_telling(self._told, self._config),
                 min(self._last.progress, 1.))

  def _run_layers(self) -> None:
    parted = self._coarse.parted() if self._has_time_for_parts else None
    self._moves_wholes = parted is not None
    until = (self._config.alone_until
             if parted is None else self._config.layers_until)
    self._told = self._of_wholes(until)
    self._parted = parted

  def _run_parts(self) -> None:
    if not self._has_time_for_parts:
      return
    assert self._parted is not None
    self._coarse = self._parted
    self._last = self._annealings(self._coarse.wholes(), _WHOLES, self._told)
    found = self._of_wholes(self._config.parts_until)
    self._told = sorted(found + self._told, key=operator.itemgetter(0))

  def _run_cells(self) -> None:
    """Time steps move, for all the time that is left or for a brief one."""
    told = self._told
    if told and self._last.progress >= 1:
      return
    # Layers may be ahead by overflowing less: then cells have to make it fit.
    fits = bool(told) and not any(told[0][0][:-1])
    brief = fits and _is_behind(self._start_key, told[0][0],
                                self._config.faster)
    cells = self._annealings(self._coarse, moves_lib.Moves.kinds, told)
    share = self._config.brief if brief else self._config.round
    while not cells.found or not brief and cells.goes_on:
      cells.search(max(min(share, 1 - cells.progress), 0.), models=self._models)
    self._told, self._last = cells.told() + told, cells

  @property
  def _has_time_for_parts(self) -> bool:
    config = self._config
    return self._last.progress < config.alone_until - config.parts_least

  def _annealings(
      self, coarse: coarse_problem.CoarseProblem, kinds: Sequence[str],
      told: Sequence[_Told] = ()) -> _Searches:
    """Annealings that begin with the starts and with the best that is told."""
    evaluations = self._last.evaluations if told else 0
    further = [row for _, row in told[:self._config.further]]
    return _Searches(coarse, self._starts, self._rng, self._budget, kinds,
                     evaluations, further)

  def _of_wholes(self, until: float) -> list[_Told]:
    """What annealings find, the best first, as long as they beat the start.

    They end at some progress if one has priced all that it wanted; else they go
    on until layers alone would end, at least.
    """
    config, whole = self._config, self._last
    last = max(until, config.alone_until)
    while True:
      whole.search(max(min(config.round, last - whole.progress), 0.),
                   config.priced)
      told = whole.told()
      most = max(search.evaluations for search in whole.found)
      ends = until if most >= config.priced else last
      if (whole.progress >= ends or whole.settled or
          _is_behind(told[0][0], self._start_key)):
        return told


def _is_behind(key: evaluator_lib.Key, other: evaluator_lib.Key,
               times: float = 1.) -> bool:
  """Whether it takes so many times as long, at least, and is no better else."""
  return key[:-1] >= other[:-1] and key[-1] >= times * other[-1]


def _worth_telling(told: Sequence[_Told],
                   config: search_config.CoarseConfig) -> np.ndarray:
  """int32 [K, G], the best first."""
  ranked = sorted(told, key=operator.itemgetter(0))
  best = ranked[0][0]
  rows = {
      row.tobytes(): row for key, row in ranked
      if key[:-1] == best[:-1] and key[-1] <= config.far * best[-1]
  }
  return np.stack(list(rows.values())[:config.told])


class _Searches:
  """Searches in order from the same starts, one after the other.

  Attributes:
    found: What they were, in turn.
    evaluations: Placements priced so far, by others before them, too.
  """

  def __init__(
      self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
      rng: np.random.Generator, budget: search_budget.SearchBudget,
      kinds: Sequence[str], evaluations: int = 0,
      further: Sequence[np.ndarray] = ()) -> None:
    """Prices the starts, int [S, G], first in, first out.

    Args:
      coarse: Of G groups.
      starts: int [S, G], of which the best few are looked at in order.
      rng: Of the searches.
      budget: Of all of them.
      kinds: Of moves.
      evaluations: Placements that others have priced before.
      further: K of int [G], all of which are looked at in order, too.
    """
    self._coarse, self._rng, self._budget = coarse, rng, budget
    self.evaluations = evaluations
    self.found: list[priority_annealing.PriorityAnnealing] = []
    problem = coarse.problem
    rows = np.unique(coarse.projected(starts), axis=0)
    prices = problem.evaluator.price_groups(problem.graph, rows)
    best = prices.ranking()[:coarse.config.priorities.starts]
    self._rows = rows[best]
    if further:
      self._rows = np.concatenate(
          [coarse.projected(np.stack(further)), self._rows])
    self._moves = moves_lib.Moves(problem, kinds)

  @property
  def progress(self) -> float:
    """Of all that there is time for, from 0 to 1, or more."""
    return self._budget.progress(self.evaluations)

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
    config = self._coarse.config.coarse
    *before, last = [search.best_key for search in self.found]
    if not before or self.found[-1].evaluations < config.alike_after:
      return False
    best = min(before)
    return (last[:-1] == best[:-1] and
            abs(last[-1] - best[-1]) <= config.alike * last[-1])

  def search(self, share: float, most: int = sys.maxsize,
             models: Models = lambda problem: None) -> None:
    """Ends after such a share of the time, or so many placements."""
    model = models(self._coarse.problem)
    begun = not self.found and model is None
    search = self._first if begun else self._begun(model)
    budget = self._budget.part(share, most)
    staged_search.anneal([search], budget, reports=False)
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
