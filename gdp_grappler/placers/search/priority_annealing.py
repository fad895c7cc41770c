"""Annealing of placements whose ops run in the order of priorities.

TensorFlow starts ready ops first in, first out. Control edges can enforce
another order, such as the critical path first. The placement that is fastest
first in, first out need not be the fastest in another order. So this search
prices placements in the order of priorities
(`evaluator.Evaluator.price_in_order`).

Computing the priorities of each placement would take much of the time. So the
search computes the priorities of its best placement, by the critical path, and
prices all further placements with these priorities. From time to time the
search computes the priorities of its best placement again. The search stores a
placement together with the priorities with which it was priced.
"""

from __future__ import annotations

import dataclasses
import operator

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib


@dataclasses.dataclass(frozen=True, eq=False)
class _InOrder:
  """A placement, its priorities by the critical path, and its key.

  Attributes:
    key: Ranks the placement by its price with these priorities (`Prices.keys`).
    row: int [G], devices of groups.
    priorities: float64 [N], priorities of ops.
  """

  key: evaluator_lib.Key
  row: np.ndarray
  priorities: np.ndarray


_key = operator.attrgetter('key')
# Number of prices for new priorities: one price of the best placement with the
# new priorities, and one at the restart of the annealing.
_REFRESH_PRICES = 2


class PriorityAnnealing:
  """An annealing of placements whose ops run in the order of priorities.

  Attributes:
    best: The best placement so far, with its priorities.
    best_key: Key of that placement in the order of its priorities.
  """

  def __init__(self, problem: placer_lib.Problem, starts: np.ndarray,
               rng: np.random.Generator,
               model: move_scoring.MoveScorer | None = None,
               moves: moves_lib.Moves | None = None) -> None:
    """Prices the starts and computes the priorities of each.

    Args:
      problem: G groups, for which orders pay (`Problem.orders_pay`).
      starts: int [S, G], legal; at least one.
      rng: Random numbers of the search.
      model: See `annealing.Annealing`.
      moves: See `annealing.Annealing`.
    """
    self._config = search_config.DEFAULT.priorities
    self._problem = problem
    self._priced = 0
    self._started = self._in_order(starts)
    best = self._started[0]
    self.best: placement_lib.Placement
    self._search = annealing.Annealing(problem, best.row[None], rng, model,
                                       moves, best.priorities)
    self._refreshed, self._batches = 0., 0
    self._keep()

  @property
  def starts(
      self) -> tuple[tuple[evaluator_lib.Key, placement_lib.Placement], ...]:
    """[S], keys of the starts and the starts with priorities; best first."""
    return tuple((start.key, self._placement(start.row, start.priorities))
                 for start in self._started)

  @property
  def evaluations(self) -> int:
    """Placements priced so far."""
    return self._priced + self._search.evaluations

  @property
  def can_move(self) -> bool:
    """Whether any group has more than one device to choose from."""
    return self._search.can_move

  def price_batch(self, progress: float, count: int) -> None:
    """Prices placements.

    Args:
      progress: Progress of the annealing, from 0 to 1.
      count: Number of placements.
    """
    config = self._config
    due = progress - self._refreshed >= 1 / config.refreshes
    if (due and self._batches >= config.fewest_batches and
        count > _REFRESH_PRICES):
      before = self.evaluations
      self._refresh(progress)
      count -= self.evaluations - before
    self._batches += 1
    looked_closely = self._search.looks_closely
    self._search.price_batch(progress, count)
    if self._search.looks_closely and not looked_closely:
      # A close price (`Evaluator.price_closely`) is mostly higher than a usual
      # price. From now on a new best placement needs a close price below
      # `best_key`. So `best_key` has to be a close price, too.
      row = self.best.devices[self._problem.graph.first_ops]
      self.best_key = self._search.close_key(row, self.best.priorities)
    if self._search.best_key < self.best_key:
      self._keep()

  def _refresh(self, progress: float) -> None:
    """Computes the priorities of the best placement.

    The old priorities stay if the new ones make the step too long.
    """
    self._refreshed, self._batches = progress, 0
    row = self._search.best
    ordered = self._in_order(row[None])[0]
    key = ordered.key
    if self._search.looks_closely:
      key = self._search.close_key(row, ordered.priorities)
    *overflow, step_s = self._search.best_key
    if key <= (*overflow, step_s * (1 + self._config.loss)):
      self._search.restart(row[None], ordered.priorities)

  def _ranks(self, row: np.ndarray) -> np.ndarray:
    problem = self._problem
    return critical_path_order.upward_ranks(problem.graph,
                                            row[problem.graph.groups],
                                            problem.cluster, problem.op_seconds)

  def _in_order(self, rows: np.ndarray) -> list[_InOrder]:
    """Placements int [S, G] in critical-path order; the fastest first."""
    graph = self._problem.graph
    wanted = [self._ranks(row) for row in rows]
    prices = self._problem.evaluator.price_in_order(graph, rows[:,
                                                                graph.groups],
                                                    np.stack(wanted))
    self._priced += len(rows)
    return sorted(map(_InOrder, prices.keys(), rows, wanted), key=_key)

  def _keep(self) -> None:
    self.best_key = self._search.best_key
    self.best = self._placement(self._search.best, self._search.priorities)

  def _placement(self, row: np.ndarray,
                 priorities: np.ndarray | None) -> placement_lib.Placement:
    return dataclasses.replace(
        placement_lib.from_groups(self._problem.graph, row,
                                  self._problem.cluster), priorities=priorities)
