"""A multilevel search: a smaller problem first, then the graph itself.

The search is the coarse level of a multilevel method. Partitioners do the same:
a partitioner coarsens a graph, cuts the small graph and refines the cut in the
large one (Hendrickson and Leland, "A multilevel algorithm for partitioning
graphs", Supercomputing 1995). The placements that the coarse level finds are
starts of an annealing of the graph itself, which prices placements in the order
of priorities.

A group of the small problem is a tile: the ops of one layer in one time step.
The coarse level has three stages:

1. Whole layers move. There are few layers, so an annealing converges fast.
2. Parts of recurrent layers move. The products of a recurrent layer with its
   input form one part. The products with its state form a second part. The
   first part may be on another device than the second part, which it feeds.
3. Single tiles move.

A price in the small problem takes a fraction of a price in the graph, so the
coarse level prices many more placements in the same time. The result of one
annealing depends on its random numbers. So each stage runs several annealings,
one after the other, and keeps all results.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import sys
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
from gdp_grappler.placers.search.moves import move_scoring
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
  return _CoarseSearch(coarse, starts, rng, budget, models).run()


class _CoarseSearch:
  """The stages of the coarse level, and the placements found so far."""

  def __init__(self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
               rng: np.random.Generator, budget: search_budget.SearchBudget,
               models: staged_search.Models) -> None:
    self._coarse, self._starts, self._rng = coarse, starts, rng
    self._budget, self._models = budget, models
    self._config = search_config.DEFAULT.coarse
    layers = self._annealings(coarse.wholes(), _WHOLES)
    self._last = layers  # The annealings of the latest stage.
    tiles = self._annealings(coarse, moves_lib.Moves.kinds)
    self._start_key = tiles.start_key
    self._moves_wholes = not _is_slower(layers.start_key, self._start_key,
                                        self._config.most_slowdown)
    self._ranked: list[_Ranked] = []  # The best first.

  def run(self) -> CoarseResult:
    """Runs the stages that have something to move; returns placements."""
    if self._moves_wholes:
      parted = self._run_layers()
      if parted is not None and self._has_time_for_parts:
        self._run_parts(parted)
    self._run_tiles()
    return CoarseResult(_select_starts(self._ranked),
                        min(self._last.progress, 1.))

  def _run_layers(self) -> coarse_problem.CoarseProblem | None:
    """Moves layers; the problem whose layers are parts, if it pays."""
    parted = self._coarse.parted() if self._has_time_for_parts else None
    until = (self._config.alone_until
             if parted is None else self._config.layers_until)
    self._ranked = self._repeat_annealing(until)
    return parted

  def _run_parts(self, parted: coarse_problem.CoarseProblem) -> None:
    """Moves parts of layers; `parted` is the problem of the later stages."""
    self._coarse = parted
    self._last = self._annealings(parted.wholes(), _WHOLES, self._ranked)
    ranked = self._repeat_annealing(self._config.parts_until)
    self._ranked = sorted(ranked + self._ranked, key=operator.itemgetter(0))

  def _run_tiles(self) -> None:
    """Moves tiles, for the time that is left or for a short part of it."""
    ranked = self._ranked
    if ranked and self._last.progress >= 1:
      return
    # The best placement of layers may overflow a memory. Then tiles need all of
    # the time, to make a placement fit.
    fits = bool(ranked) and not any(ranked[0][0][:-1])
    is_short = fits and _is_slower(self._start_key, ranked[0][0],
                                   self._config.faster)
    tiles = self._annealings(self._coarse, moves_lib.Moves.kinds, ranked)
    share = self._config.short_share if is_short else self._config.round
    while not tiles.annealings or not is_short and tiles.can_continue:
      tiles.run(max(min(share, 1 - tiles.progress), 0.), models=self._models)
    self._ranked, self._last = tiles.ranked() + ranked, tiles

  @property
  def _has_time_for_parts(self) -> bool:
    config = self._config
    return self._last.progress < config.alone_until - config.parts_least

  def _annealings(
      self, coarse: coarse_problem.CoarseProblem, kinds: Sequence[str],
      ranked: Sequence[_Ranked] = ()) -> _RepeatedAnnealing:
    """Annealings that begin with the starts and with the best of `ranked`."""
    evaluations = self._last.evaluations if ranked else 0
    further = [row for _, row in ranked[:self._config.further]]
    return _RepeatedAnnealing(coarse, self._starts, self._rng, self._budget,
                              kinds, evaluations, further)

  def _repeat_annealing(self, until: float) -> list[_Ranked]:
    """Anneals layers or parts again and again; the best placement first.

    The stage ends at progress `until` if one annealing has priced enough
    placements (`CoarseConfig.priced`). Otherwise the stage goes on, at most to
    the progress `CoarseConfig.alone_until`. The stage ends at once if two
    annealings agree, or if the best start is faster than all of their results.
    """
    config, last = self._config, self._last
    latest = max(until, config.alone_until)
    while True:
      last.run(max(min(config.round, latest - last.progress), 0.),
               config.priced)
      ranked = last.ranked()
      most = max(annealing.evaluations for annealing in last.annealings)
      end = until if most >= config.priced else latest
      if (last.progress >= end or last.has_converged or
          _is_slower(ranked[0][0], self._start_key)):
        return ranked


def _is_slower(key: evaluator_lib.Key, other: evaluator_lib.Key,
               factor: float = 1.) -> bool:
  """Whether a placement is slower by a factor or more, and fits no better.

  Args:
    key: Key of a placement.
    other: Key of the placement to compare with.
    factor: Ratio of the two step times.
  """
  return key[:-1] >= other[:-1] and key[-1] >= factor * other[-1]


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


class _RepeatedAnnealing:
  """Annealings of one problem from the same starts, one after the other.

  All of them price placements in the order of priorities.

  Attributes:
    annealings: The annealings that have ended, the earliest first.
    evaluations: Placements priced so far, including the earlier stages.
  """

  def __init__(
      self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
      rng: np.random.Generator, budget: search_budget.SearchBudget,
      kinds: Sequence[str], evaluations: int = 0,
      further: Sequence[np.ndarray] = ()) -> None:
    """Ranks the starts by their prices, first in, first out.

    Args:
      coarse: The smaller problem of a problem with G groups.
      starts: int [S, G]; each annealing begins with the best few of them.
      rng: Random numbers of the annealings.
      budget: Budget of all stages together.
      kinds: Kinds of moves.
      evaluations: Placements that the earlier stages have priced.
      further: K of int [G]; each annealing begins with all of them, too.
    """
    self._coarse, self._rng, self._budget = coarse, rng, budget
    self.evaluations = evaluations
    self.annealings: list[priority_annealing.PriorityAnnealing] = []
    problem = coarse.problem
    rows = np.unique(coarse.projected(starts), axis=0)
    prices = problem.evaluator.price_groups(problem.graph, rows)
    best = prices.ranking()[:search_config.DEFAULT.start.best]
    self._rows = rows[best]
    if further:
      self._rows = np.concatenate(
          [coarse.projected(np.stack(further)), self._rows])
    self._moves = moves_lib.Moves(problem, kinds)

  @property
  def progress(self) -> float:
    """Share of the budget of all stages that is spent; 1 or more at the end."""
    return self._budget.progress(self.evaluations)

  @property
  def start_key(self) -> evaluator_lib.Key:
    """Key of the best start, in the order of priorities."""
    return self._first.best_key

  @property
  def can_continue(self) -> bool:
    """Whether there is time for another annealing and a group that can move."""
    return self.progress < 1 and self.annealings[-1].can_move

  @property
  def has_converged(self) -> bool:
    """Whether the last annealing agrees with the best of those before.

    The result is also true if no group can move.
    """
    if not self.annealings[-1].can_move:
      return True
    config = search_config.DEFAULT.coarse
    *before, last = [annealing.best_key for annealing in self.annealings]
    if not before or self.annealings[-1].evaluations < config.equal_after:
      return False
    best = min(before)
    return (last[:-1] == best[:-1] and
            abs(last[-1] - best[-1]) <= config.equal_difference * last[-1])

  def run(self, share: float, most: int = sys.maxsize,
          models: staged_search.Models = staged_search.no_model) -> None:
    """Runs one more annealing.

    Args:
      share: Share of the budget of all stages that the annealing may spend.
      most: Placements that the annealing may price.
      models: Makes the model that scores the moves.
    """
    model = models(self._coarse.problem)
    is_first = not self.annealings and model is None
    annealing = self._first if is_first else self._make_annealing(model)
    budget = self._budget.part(share, most)
    staged_search.anneal([annealing], budget, reports=False)
    self.annealings.append(annealing)
    self.evaluations += annealing.evaluations
    progress_lib.reached(min(self.progress, 1.))

  @functools.cached_property
  def _first(self) -> priority_annealing.PriorityAnnealing:
    """The first annealing; `start_key` needs it before it runs."""
    return self._make_annealing()

  def _make_annealing(
      self, model: move_scoring.MoveScorer | None = None
  ) -> priority_annealing.PriorityAnnealing:
    return priority_annealing.PriorityAnnealing(self._coarse.problem,
                                                self._rows, self._rng, model,
                                                self._moves)

  def ranked(self) -> list[_Ranked]:
    """The best placement int32 [G] of each annealing, the fastest first."""
    first = self._coarse.problem.graph.first_ops
    ranked = sorted(self.annealings, key=lambda annealing: annealing.best_key)
    rows = self._coarse.spread(
        np.stack([annealing.best.devices[first] for annealing in ranked]))
    return [(annealing.best_key, row) for annealing, row in zip(ranked, rows)]
