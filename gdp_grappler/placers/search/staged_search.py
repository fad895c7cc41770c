"""Runs the stages of a search.

Each order of ops (FIFO, and by priorities) has one long annealing. Several
short annealings run before the long FIFO annealing. Each short annealing begins
with the best placement of another source. Several are needed because an
annealing often finds only placements that are similar to its start. So the best
start need not lead to the best placement. All annealings share one budget.
"""

from __future__ import annotations

import math
import operator
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import progress as progress_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import stages
from gdp_grappler.placers.search.edges import edge_selection
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib

# Makes a model that scores the moves of one annealing of a problem.
Models = Callable[[placer_lib.Problem], move_scoring.MoveScorer | None]
_AnyAnnealing = annealing.Annealing | priority_annealing.PriorityAnnealing


def no_model(problem: placer_lib.Problem) -> None:
  """No model: the annealing prices every move that it draws."""
  del problem


def models_of(network: move_network.MoveNetwork) -> Models:
  """Models that score moves by a network.

  Args:
    network: Predicts the gains of moves.

  Returns:
    Function of a problem. Each call makes a new scorer, because a scorer serves
    one search at a time.
  """
  return lambda problem: move_scoring.MoveScorer(
      move_scoring.MoveDescriber(problem), network)


def search(
    problem: placer_lib.Problem, starts: np.ndarray, rng: np.random.Generator,
    budget: search_budget.SearchBudget, models: Models = no_model,
    moves: moves_lib.Moves | None = None, further: Sequence[np.ndarray] = (),
    varied: np.ndarray | None = None,
    several: np.ndarray | None = None) -> tuple[placement_lib.Placement, ...]:
  """Searches for the best placement of each order of ops.

  Args:
    problem: G groups.
    starts: int [S, G]; the search prices all of them.
    rng: Random numbers of the search.
    budget: Budget of the search; the prices of the starts count.
    models: Makes a model for each annealing.
    moves: Draws moves of the problem; None means moves of all kinds.
    further: int [K, G] each, more starts for the annealing under priorities.
    varied: int [V, G], starts for the annealing under priorities, in place of
      the best of `starts`. They should differ much: the placement that is the
      fastest in order may be slow first in, first out.
    several: int [K, G], starts of the short FIFO annealings, the most promising
      first. The search has no short annealings if this argument is None, or if
      no placement of `starts` fits into the memories.

  Returns:
    The best placement by FIFO price. If orders pay (`Problem.orders_pay`) and
    there was time, also the best placement with priorities. Which of the two is
    faster depends on the control edges that enforce the priorities
    (`edge_selection`).
  """
  orders = problem.orders_pay
  progress_lib.doing(
      'searching for placements and orders' if orders else 'searching')
  staged = _StagedSearch(problem, starts, rng, budget, models, moves, further,
                         varied, several)
  for stage in stages.BOTH_ORDERS if orders else stages.FIFO_ONLY:
    staged.run(stage)
  return staged.placements()


def anneal(annealings: Sequence[_AnyAnnealing],
           budget: search_budget.SearchBudget,
           stretch: stages.Stretch = stages.WHOLE, reports: bool = True,
           each_s: float = 0.) -> None:
  """Runs the first of some annealings through its part of a search.

  Args:
    annealings: All annealings that share the budget; the first one runs.
    budget: Budget of all annealings together.
    stretch: The part of the search in which the first annealing runs.
    reports: Whether to report the progress of the whole search.
    each_s: Seconds of a price, as far as they are known.
  """
  batch = search_config.DEFAULT.annealing.batch
  first, batch_s, begin_s = annealings[0], batch * each_s, -1.
  while first.can_move:
    evaluations = sum(each.evaluations for each in annealings)
    progress = budget.progress(evaluations)
    if reports:
      progress_lib.reached(progress)
    if begin_s >= 0:
      batch_s = budget.seen_s - begin_s
    # Nothing stops a batch, and a batch of a large graph takes long.
    if progress >= stretch.end or budget.ends_within(batch_s):
      break
    begin_s = budget.seen_s
    first.price_batch(stretch.cooled(progress),
                      min(batch, budget.evaluations - evaluations))


class _StagedSearch:
  """A search: its annealings and its progress."""

  def __init__(self, problem: placer_lib.Problem, starts: np.ndarray,
               rng: np.random.Generator, budget: search_budget.SearchBudget,
               models: Models, moves: moves_lib.Moves | None,
               further: Sequence[np.ndarray], varied: np.ndarray | None,
               several: np.ndarray | None) -> None:
    self._problem, self._starts, self._further = problem, starts, further
    self._varied, self._several = varied, several
    self._rng, self._budget, self._models = rng, budget, models
    self._moves = moves_lib.Moves(problem) if moves is None else moves
    self._model = models(problem)
    orders = problem.orders_pay
    # Only short annealings and the stage under priorities need to know how long
    # a price takes.
    needs_seconds = orders or several is not None
    begin_s = budget.spent_s if needs_seconds else 0.
    self._plain = annealing.Annealing(problem, starts, rng, self._model,
                                      self._moves)
    if not self._plain.fits:
      self._several = None
    self._plain.pack_if_none_fits(starts)
    self._ranking = self._plain.ranking
    self._short: list[annealing.Annealing] = []
    # Seconds per price.
    self._each_s = ((budget.spent_s - begin_s)
                    / self._plain.evaluations if needs_seconds else 0.)
    # Seconds per price in the check of an annealing's first batch. 0, if orders
    # do not pay: this batch then begins even if it will end late.
    self._first_s = self._each_s if orders else 0.
    # Approximate seconds of one computation of control edges.
    config = search_config.DEFAULT
    steps = min(config.edge_ops / max(problem.graph.num_ops, 1),
                config.edges.most_steps)
    self._edges_s = config.edges.cost * self._each_s * steps
    self._ordered: priority_annealing.PriorityAnnealing | None = None
    # The placement with the shortest predicted ordered step at the beginning of
    # the last stage, and the result of `edge_selection.with_edges` for it.
    self._promising: placement_lib.Placement | None = None
    self._halfway: list[tuple[evaluator_lib.Key, placement_lib.Placement]] = []
    self._begin = self._cooled = 0.

  def run(self, stage: stages.Stage) -> None:
    """Runs a stage to its end."""
    if stage.order is stages.StageOrder.SHORT_FIFO:
      if not self._anneal_each(stage):
        return
    elif stage.order is stages.StageOrder.FIFO:
      self._anneal([self._plain, *self._short], stage, self._cooled)
    elif stage.order is stages.StageOrder.PRIORITIES:
      starts = self._ordered_starts()
      if not len(starts):
        return  # Little time is left, and the first prices in order take long.
      self._ordered = priority_annealing.PriorityAnnealing(
          self._problem, starts, self._rng, self._models(self._problem),
          self._moves)
      self._anneal([self._ordered, self._plain, *self._short], stage, 0.)
    elif self._ordered and self._budget.progress(self._evaluations) < 1:
      self._anneal([*self._faster_first(), *self._short], stage, self._cooled)
    self._begin, self._cooled = stage.until, stage.cooled

  def placements(self) -> tuple[placement_lib.Placement, ...]:
    """The best placement by FIFO price; then, if any, the best in order."""
    if self._ordered is None:
      return (placement_lib.from_groups(self._problem.graph, self._plain.best,
                                        self._problem.cluster),)
    ordered = self._ordered.best
    ranked = [(key, placement) for key, placement in self._halfway
              if placement.priorities is not None]
    plain = self._fastest_fifo(
        [*(placement for _, placement in ranked), ordered])
    if ordered is not self._promising and self._has_time_for_edges:
      ranked.append(edge_selection.with_edges(self._problem, ordered))
    if not ranked:
      return plain, ordered
    return plain, min(ranked, key=operator.itemgetter(0))[1]

  @property
  def _evaluations(self) -> int:
    ordered = self._ordered
    return sum(each.evaluations for each in (self._plain, *self._short)) + (
        ordered.evaluations if ordered else 0)

  def _anneal(self, annealings: Sequence[_AnyAnnealing], stage: stages.Stage,
              cooled: float) -> None:
    anneal(annealings, self._budget,
           stages.Stretch(self._begin, stage.until, cooled, stage.cooled),
           each_s=self._first_s)

  def _anneal_each(self, stage: stages.Stage) -> bool:
    """Runs the short annealings; the long one begins with their best placement.

    Returns:
      Whether there were short annealings. With little time there are none.
    """
    if self._several is None:
      return False
    begin = self._budget.progress(self._evaluations)
    starts = self._several[:self._affordable(begin, stage.until)]
    if len(starts) < 2:
      return False
    share = (stage.until - begin) / len(starts)
    for k, start in enumerate(starts):
      short = annealing.Annealing(self._problem, start[None], self._rng,
                                  self._model, self._moves)
      self._short.append(short)
      others = [
          each for each in (self._plain, *self._short) if each is not short
      ]
      anneal([short, *others], self._budget,
             stages.Stretch(begin + k * share, begin + (k + 1) * share),
             each_s=self._each_s)
    self._plain.restart(
        np.stack([self._plain.best, *(short.best for short in self._short)]))
    return True

  def _affordable(self, begin: float, end: float) -> int:
    """Number of short annealings in a part of the whole search's progress."""
    if begin >= end:
      return 0
    config, budget = search_config.DEFAULT.short, self._budget
    count = budget.affordable(config.fewest * self._each_s, config.starts,
                              (end - begin) / (1 - begin))
    prices = int((end - begin) * budget.evaluations)
    return min(count, prices // config.fewest)

  def _ordered_starts(self) -> np.ndarray:
    """int [K, G], starts of the annealing under priorities.

    Each start costs as much time as several prices. So the number of starts
    depends on the time that is left. There is none if the time is too short for
    one start.
    """
    config = search_config.DEFAULT
    count = self._budget.affordable(config.start_prices * self._each_s,
                                    config.priorities.starts,
                                    config.starting_share)
    others = self._varied
    if others is None:
      others = self._starts[self._ranking]
    starts = np.concatenate(
        [self._plain.best[None], *self._further, others[:count]])
    fitting = (number for number in range(len(starts), 0, -1)
               if self._budget.has_left(self._starting_s(number)))
    return starts[:next(fitting, 0)]

  def _starting_s(self, count: int) -> float:
    """Approximate seconds until this number of starts is priced in order."""
    config = search_config.DEFAULT
    return self._each_s * (config.start_prices * count + 1)

  def _faster_first(self) -> list[_AnyAnnealing]:
    """Both annealings; first the one whose best placement is faster.

    The step of a placement with priorities is that with its control edges.
    """
    assert self._ordered is not None
    begin_s = self._budget.spent_s
    key, promising = self._most_promising()
    # Edges are computed now, and once more after the search.
    if self._budget.has_left(2 * self._edges_s):
      self._promising = promising
      self._halfway = [edge_selection.with_edges(self._problem, promising)]
      key = self._halfway[0][0]
      # The second computation takes about as long as the first.
      self._edges_s = self._budget.spent_s - begin_s
      self._budget.keep(self._edges_s)
    if promising.priorities is None or self._plain.best_key <= key:
      return [self._plain, self._ordered]
    return [self._ordered, self._plain]

  @property
  def _has_time_for_edges(self) -> bool:
    """Whether at least half of the time for control edges is left."""
    return self._budget.has_left(self._edges_s / 2)

  def _most_promising(
      self) -> tuple[evaluator_lib.Key, placement_lib.Placement]:
    """The likely fastest placement with control edges, after its key."""
    problem, graph = self._problem, self._problem.graph
    simulator = problem.simulator
    assert simulator is not None and self._ordered is not None  # Orders pay.
    plain = placement_lib.from_groups(graph, self._plain.best, problem.cluster)
    promised_s = control_edges.promised_s(graph, plain, simulator)
    fifo_s = float(simulator.price(graph, plain.devices[None]).seconds[0])
    gain = promised_s / fifo_s if 0 < fifo_s < math.inf else 1.
    key = self._plain.best_key
    ranked = [(self._ordered.best_key, self._ordered.best),
              *self._ordered.starts,
              ((*key[:3], key[3] * min(gain, 1.)), plain)]
    return min(ranked, key=operator.itemgetter(0))

  def _fastest_fifo(
      self,
      others: Sequence[placement_lib.Placement]) -> placement_lib.Placement:
    """The best by FIFO price of the FIFO result and others; no priorities."""
    graph, cluster = self._problem.graph, self._problem.cluster
    devices = np.stack(
        [self._plain.best[graph.groups], *(other.devices for other in others)])
    best = self._problem.evaluator.price(graph, devices).best()
    return placement_lib.Placement(devices[best], cluster)
