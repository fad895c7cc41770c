"""Runs the stages of a search: one annealing per order, one budget for all."""

from __future__ import annotations

import math
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import progress as progress_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import priority_annealing
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import stages
from gdp_grappler.placers.search.edges import order_ranking
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import moves as moves_lib

# Makes a model that chooses the moves of one annealing.
Models = Callable[[], move_model.MoveModel | None]
_AnyAnnealing = annealing.Annealing | priority_annealing.PriorityAnnealing


def _no_model() -> None:
  """Every move that is drawn is priced."""


def searched(
    problem: placer_lib.Problem, starts: np.ndarray, rng: np.random.Generator,
    budget: search_budget.SearchBudget, models: Models = _no_model,
    kinds: Sequence[str] = moves_lib.Moves.kinds,
    further: Sequence[np.ndarray] = (),
    config: search_config.SearchConfig = search_config.DEFAULT
) -> tuple[placement_lib.Placement, ...]:
  """The best placement first in, first out; then the best under priorities.

  There is a second one only where orders pay (`priority_annealing.pays`). Which
  of the two is faster depends on the control edges that enforce the priorities
  (`edge_selection`).

  Args:
    problem: G groups.
    starts: int [S, G], all of which are priced.
    rng: Of the search.
    budget: Of the search, the starts included.
    models: Makes a model for each annealing.
    kinds: Kinds of moves; at least one.
    further: int [K, G] each, more starts for the annealing under priorities.
    config: The numbers of the search.
  """
  orders = priority_annealing.pays(problem)
  progress_lib.doing('searching, and for an order' if orders else 'searching')
  search = _StagedSearch(problem, starts, rng, budget, models, kinds, further,
                         config)
  for stage in stages.BOTH_ORDERS if orders else stages.FIFO_ONLY:
    search.run(stage)
  return search.placements()


def fifo_annealing(
    problem: placer_lib.Problem, starts: np.ndarray, rng: np.random.Generator,
    model: move_model.MoveModel | None = None,
    moves: moves_lib.Moves | None = None,
    config: search_config.AnnealingConfig = search_config.DEFAULT.annealing
) -> annealing.Annealing:
  """An annealing of some starts, packed memories among them where none fits.

  Args:
    problem: G groups.
    starts: int [S, G], all of which are priced.
    rng: Of the annealing.
    model: Chooses the moves that are priced; None prices all.
    moves: Of the problem; by default of all kinds.
    config: The numbers of the annealing.
  """
  return annealing.with_packed(
      problem, starts,
      annealing.Annealing(problem, starts, rng, model, moves, config))


def anneal(annealings: Sequence[_AnyAnnealing],
           budget: search_budget.SearchBudget,
           stretch: stages.Stretch = stages.WHOLE, reports: bool = True,
           batch: int = search_config.DEFAULT.annealing.batch) -> None:
  """The first of some annealings goes on for a stretch.

  Args:
    annealings: All whose placements count in the budget.
    budget: Of all.
    stretch: Of the first one.
    reports: Whether to report the progress of all.
    batch: Moves that are priced at a time.
  """
  first = annealings[0]
  while first.can_move:
    evaluations = sum(each.evaluations for each in annealings)
    progress = budget.progress(evaluations)
    if reports:
      progress_lib.reached(progress)
    if progress >= stretch.end:
      break
    first.step(stretch.cooled(progress),
               min(batch, budget.evaluations - evaluations))


class _StagedSearch:
  """A search: its annealings, and how far it has come."""

  def __init__(self, problem: placer_lib.Problem, starts: np.ndarray,
               rng: np.random.Generator, budget: search_budget.SearchBudget,
               models: Models, kinds: Sequence[str],
               further: Sequence[np.ndarray],
               config: search_config.SearchConfig) -> None:
    self._problem, self._starts, self._further = problem, starts, further
    self._rng, self._budget, self._models = rng, budget, models
    self._config = config
    self._moves = moves_lib.Moves(problem, kinds)
    orders = priority_annealing.pays(problem)
    begin_s = budget.spent_s if orders else 0.
    self._plain = fifo_annealing(problem, starts, rng, models(), self._moves,
                                 config.annealing)
    # Seconds per price, for the stage under priorities.
    self._each_s = ((budget.spent_s - begin_s)
                    / self._plain.evaluations if orders else 0.)
    self._ordered: list[priority_annealing.PriorityAnnealing] = []
    self._edges = order_ranking.OrderRanking(problem, config.edges)
    self._compared: list[placement_lib.Placement] = []
    self._begin = self._cooled = 0.

  def run(self, stage: stages.Stage) -> None:
    """Goes on until the stage ends."""
    if stage.order is stages.Order.FIFO:
      self._anneal([self._plain], stage, 0.)
    elif stage.order is stages.Order.PRIORITIES:
      self._race(stage)
    elif self._budget.progress(self._evaluations) < 1:
      self._anneal(self._faster_first(), stage, self._cooled)
    self._begin, self._cooled = stage.until, stage.cooled

  def placements(self) -> tuple[placement_lib.Placement, ...]:
    """The best first in, first out; the best with its edges."""
    if not self._ordered:
      return (placement_lib.from_groups(self._problem.graph, self._plain.best,
                                        self._problem.cluster),)
    ordered = self._ordered[0].best
    asked = [*filter(self._edges.orders, self._compared), ordered]
    plain = self._fastest_fifo(asked)
    if self._compared and len(asked) == 1 and self._budget.passed:
      return plain, ordered  # What is known is enough.
    return plain, self._edges.best(asked, lambda: self._budget.passed)

  @property
  def _evaluations(self) -> int:
    return self._plain.evaluations + sum(
        each.evaluations for each in self._ordered)

  def _anneal(self, annealings: Sequence[_AnyAnnealing], stage: stages.Stage,
              cooled: float) -> None:
    anneal(annealings, self._budget,
           stages.Stretch(self._begin, stage.until, cooled, stage.cooled),
           batch=self._config.annealing.batch)

  def _race(self, stage: stages.Stage) -> None:
    """Annealings under priorities, a part of the stage each; the best first."""
    starts = self._ordered_starts()
    stretch = stages.Stretch(self._begin, stage.until, 0., stage.cooled)
    racers: list[priority_annealing.PriorityAnnealing] = []
    for part in stretch.parts(self._num_racers()):
      racers.insert(
          0,
          priority_annealing.PriorityAnnealing(self._problem, starts, self._rng,
                                               self._models(), self._moves,
                                               self._config))
      anneal([*racers, self._plain], self._budget, part,
             batch=self._config.annealing.batch)
    self._ordered = sorted(reversed(racers), key=lambda racer: racer.best_key)

  def _num_racers(self) -> int:
    """How many there is time for."""
    config, priced = self._config.priorities, self._plain.evaluations
    long = priced >= config.racing_from * self._budget.progress(priced)
    return config.racers if long else 1

  def _ordered_starts(self) -> np.ndarray:
    """int [K, G]; the best start is among them even if time is over."""
    config, plain = self._config, self._plain
    count = self._budget.affordable(config.start_prices * self._each_s,
                                    config.priorities.starts,
                                    config.starting_share)
    return np.concatenate(
        [plain.best[None], *self._further, self._starts[plain.ranking[:count]]])

  def _faster_first(self) -> list[_AnyAnnealing]:
    """All annealings, the one whose best is faster with edges first."""
    ordered, *slower = self._ordered
    begin_s = self._budget.spent_s
    self._compared = self._edges.compared(self._likely(),
                                          self._while_affordable())
    self._budget.keep((self._budget.spent_s - begin_s) / len(self._compared))
    leader = min(self._compared, key=self._edges.key)
    if (leader.priorities is None or
        self._plain.best_key <= self._edges.key(leader)):
      return [self._plain, ordered, *slower]
    return [ordered, self._plain, *slower]

  def _likely(self) -> list[order_ranking.Ranked]:
    """What is likely fast with edges, the fastest in order first."""
    problem, graph = self._problem, self._problem.graph
    simulator = problem.simulator
    assert simulator is not None  # Orders pay.
    found = placement_lib.from_groups(graph, self._plain.best, problem.cluster)
    promised_s = control_edges.promised_s(graph, found, simulator)
    fifo_s = float(simulator.price(graph, found.devices[None]).seconds[0])
    gain = promised_s / fifo_s if 0 < fifo_s < math.inf else 1.
    key = self._plain.best_key
    return order_ranking.distinct([
        *((each.best_key, each.best) for each in self._ordered),
        *self._ordered[0].starts, ((*key[:3], key[3] * min(gain, 1.)), found)
    ])

  def _while_affordable(self) -> Callable[[int], bool]:
    """Whether one more comparison fits, after a number of them from now on."""
    budget, config = self._budget, self._config.edges
    begin_s = budget.spent_s
    most = config.clocked if budget.clocked else config.compared

    def goes_on(count: int) -> bool:
      each_s = (budget.spent_s - begin_s) / count
      return count < budget.affordable(each_s, most, config.share)

    return goes_on

  def _fastest_fifo(
      self,
      others: Sequence[placement_lib.Placement]) -> placement_lib.Placement:
    """The best first in, first out, without priorities."""
    graph, cluster = self._problem.graph, self._problem.cluster
    devices = np.stack(
        [self._plain.best[graph.groups], *(other.devices for other in others)])
    best = self._problem.evaluator.price(graph, devices).best()
    return placement_lib.Placement(devices[best], cluster)
