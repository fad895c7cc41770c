"""Annealing of placements whose ops run in a good order.

A placement that is fast in the order in which TensorFlow starts ops need not be
the one that is fast when control edges let the critical path go first. So this
search prices placements in the order of priorities, as edges can keep it
(`evaluator.Evaluator.price_in_order`). They are those of one placement, in the
best of some `orders`, and hold for all that come out of it, until they are made
anew: an order of its own for each would cost more than its price. A placement
and the priorities under which it was priced belong together.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import orders
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_model
from gdp_grappler.placers.search.moves import moves as moves_lib


def pays(problem: placer_lib.Problem) -> bool:
  """Whether to look for orders: they are wanted, and there are queues to order.

  Where ops of a device share its cores, as on CPUs, edges only cost.
  """
  devices = problem.cluster.devices
  return (problem.may_add_edges and problem.evaluator.simulated and
          sum(device.asynchronous for device in devices) > 1)


@dataclasses.dataclass(frozen=True, eq=False)
class _InOrder:
  """A placement, the priorities [N] that are the best for it, and a key.

  Attributes:
    key: What the placement ranks by in this order.
    row: int [G].
    priorities: float64 [N].
  """

  key: evaluator_lib.Key
  row: np.ndarray
  priorities: np.ndarray


_key = operator.attrgetter('key')


class PriorityAnnealing:
  """A search under priorities.

  Attributes:
    best: The best placement so far, with the priorities that go with it.
    best_key: What it ranks by, if these are obeyed.
  """

  def __init__(self, problem: placer_lib.Problem, starts: np.ndarray,
               rng: np.random.Generator,
               model: move_model.MoveModel | None = None,
               moves: moves_lib.Moves | None = None,
               config: search_config.SearchConfig | None = None) -> None:
    """Prices where the search may begin.

    Args:
      problem: G groups; one whose orders pay.
      starts: int [S, G], legal; at least one. Each gets priorities of its own.
      rng: Of the steps.
      model: Chooses the steps to price; None prices all that are drawn.
      moves: As of `annealing.Annealing`.
      config: The numbers of the search.
    """
    config = config or search_config.DEFAULT
    self._config = config.priorities
    self._problem, self._model = problem, model
    self._priced = 0
    self._started = self._in_some_order(starts)
    best = self._started[0]
    self._order = _Order(problem.evaluator, best.priorities)
    self._search = annealing.Annealing(problem.priced_by(self._order),
                                       best.row[None], rng, model, moves,
                                       config.annealing)
    self._tell_order()
    self._refreshed, self._steps = 0., 0
    self._keep()

  @property
  def starts(
      self) -> tuple[tuple[evaluator_lib.Key, placement_lib.Placement], ...]:
    """[S] where the search may have begun, the best first.

    With priorities, each with what it ranks by.
    """
    return tuple((start.key, self._placement(start.row, start.priorities))
                 for start in self._started)

  @property
  def evaluations(self) -> int:
    """Placements priced so far."""
    return self._priced + self._search.evaluations

  @property
  def can_move(self) -> bool:
    """Whether any group has a choice."""
    return self._search.can_move

  def step(self, progress: float, count: int) -> None:
    """Prices `count` placements at some progress from 0 to 1."""
    config = self._config
    due = progress - self._refreshed >= 1 / config.refreshes
    if (due and self._steps >= config.fewest_batches and
        count > orders.COUNT + 1):
      before = self.evaluations
      self._refresh(progress)
      count -= self.evaluations - before
    self._steps += 1
    self._search.step(progress, count)
    if self._search.best_key < self.best_key:
      self._keep()

  def _refresh(self, progress: float) -> None:
    """Makes priorities of the best placement, unless they are worse."""
    self._refreshed, self._steps = progress, 0
    row = self._search.best
    found = self._in_some_order(row[None])[0]
    if found.key[-1] <= self._search.best_key[-1] * (1 + self._config.loss):
      self._order.priorities = found.priorities
      self._tell_order()
      self._search.restart(row[None], progress)

  def _tell_order(self) -> None:
    if self._model is not None:
      self._model.ordered(self._order.priorities)

  def _ranks(self, row: np.ndarray) -> np.ndarray:
    problem = self._problem
    return critical_path_order.upward_ranks(problem.graph,
                                            row[problem.graph.groups],
                                            problem.cluster, problem.op_seconds)

  def _in_some_order(self, rows: np.ndarray) -> list[_InOrder]:
    """Placements int [S, G], each in the best order it was priced in.

    The best first. The first few by ranks are priced in other orders as well.
    """
    graph = self._problem.graph
    found = self._priced_in([*rows], [self._ranks(row) for row in rows])
    found.sort(key=_key)
    more = [(index, order)
            for index, ranked in enumerate(found[:self._config.several_orders])
            for order in orders.others(graph, ranked.priorities)]
    others = self._priced_in([found[index].row for index, _ in more],
                             [order for _, order in more])
    for (index, _), other in zip(more, others):
      found[index] = min(found[index], other, key=_key)
    return sorted(found, key=_key)

  def _priced_in(self, rows: Sequence[np.ndarray],
                 wanted: Sequence[np.ndarray]) -> list[_InOrder]:
    """K placements int [G], each in an order float64 [N]."""
    if not rows:
      return []
    graph = self._problem.graph
    prices = self._problem.evaluator.price_in_order(
        graph,
        np.stack(rows)[:, graph.groups], np.stack(wanted))
    self._priced += len(wanted)
    return [
        _InOrder(key, row, order)
        for key, row, order in zip(prices.keys(), rows, wanted)
    ]

  def _keep(self) -> None:
    self.best_key = self._search.best_key
    self.best = self._placement(self._search.best, self._order.priorities)

  def _placement(self, row: np.ndarray,
                 priorities: np.ndarray) -> placement_lib.Placement:
    return dataclasses.replace(
        placement_lib.from_groups(self._problem.graph, row,
                                  self._problem.cluster), priorities=priorities)


class _Order(evaluator_lib.Evaluator):
  """Prices groups in the order of priorities.

  Attributes:
    cluster: What placements index.
    simulated: Whether the other one computes its prices.
    priorities: float64 [N], at present.
  """

  def __init__(self, evaluator: evaluator_lib.Evaluator,
               priorities: np.ndarray) -> None:
    self.cluster, self.simulated = evaluator.cluster, evaluator.simulated
    self.priorities = priorities
    self._evaluator = evaluator

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """See `evaluator.Evaluator`."""
    return self._evaluator.op_seconds(graph)

  def costs(self, graph: op_graph.OpGraph) -> cost_model.CostModel:
    """See `evaluator.Evaluator`."""
    return self._evaluator.costs(graph)

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    """See `evaluator.Evaluator`; under the present priorities."""
    return self._evaluator.evaluate(
        graph, dataclasses.replace(placement, priorities=self.priorities))

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`; under the present priorities."""
    del priorities  # A search names none.
    return self._evaluator.price(graph, devices, self.priorities)

  def price_closely(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`; in the order of the present priorities."""
    del priorities  # A search names none.
    return self._evaluator.price_closely(graph, devices, self.priorities)

  def price_groups(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      ceiling_s: evaluator_lib.Ceiling | None = math.inf,
      priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`; in the order of the present priorities."""
    del priorities  # A search names none.
    return self._evaluator.price_in_order(
        graph,
        np.asarray(devices)[:, graph.groups], self.priorities,
        math.inf if ceiling_s is None else ceiling_s)
