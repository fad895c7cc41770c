"""Chooses the best of several placements, with the control edges that pay.

The choice compares robust prices. Edges are found for the plain simulated step.
So the price of a placement with edges is its robust price, times the ratio of
the plain steps with and without the edges.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config

# Function of a placement. Returns the configuration of the search for control
# edges; None if the placement gets no edges.
Orders = Callable[[placement_lib.Placement], control_edges.OrderConfig | None]


@dataclasses.dataclass(frozen=True, eq=False)
class SelectedPlacement:
  """A placement and its order.

  Attributes:
    placement: The placement.
    order: Control edges of the placement; None if it has none.
  """

  placement: placement_lib.Placement
  order: control_edges.Order | None = None

  @property
  def with_order(self) -> placement_lib.Placement:
    """The placement, with its order attached if it has one."""
    if self.order is None:
      return self.placement
    return control_edges.attach(self.placement, self.order)


def best(problem: placer_lib.Problem,
         candidates: Sequence[placement_lib.Placement],
         simulator: simulator_lib.Simulator,
         orders: Orders) -> SelectedPlacement:
  """The best candidate with its control edges; the first one of equals.

  Args:
    problem: The problem that the candidates place.
    candidates: Placements, at least one.
    simulator: Simulates the problem's cluster; predicts the gain of edges.
    orders: Returns the configuration for a candidate.
  """
  keys = problem.evaluator.price(problem.graph,
                                 np.stack([c.devices for c in candidates
                                          ])).keys()
  chosen: dict[int, control_edges.Order] = {}
  for row in _promising(problem, candidates, keys, simulator, orders):
    order = order_of(problem, candidates[row], simulator, orders)
    if order is not None:
      keys[row] = _with_seconds(
          keys[row], keys[row][-1] * order.with_edges_s / order.fifo_s)
      chosen[row] = order
  row = keys.index(min(keys))
  return SelectedPlacement(candidates[row], chosen.get(row))


def order_of(problem: placer_lib.Problem, placement: placement_lib.Placement,
             simulator: simulator_lib.Simulator,
             orders: Orders) -> control_edges.Order | None:
  """Control edges of a placement.

  Args:
    problem: The problem that is placed.
    placement: Its placement.
    simulator: Simulates the problem's cluster; predicts the gain of edges.
    orders: Returns the configuration for the placement.

  Returns:
    None if `orders` wants no edges, or if no edges are predicted to pay.
  """
  config = orders(placement)
  if config is None:
    return None
  order = control_edges.control_edges(problem.graph, placement, simulator,
                                      config)
  return order if len(order.control_edges) else None


def with_edges(
    problem: placer_lib.Problem, placement: placement_lib.Placement
) -> tuple[evaluator_lib.Key, placement_lib.Placement]:
  """The key of a placement with control edges, and the placement with them.

  Control edges enforce the priorities of a placement only in part. If edges for
  another order give a shorter step, the result has the priorities of that
  order. The result keeps its edges (`control_edges.attach`), so that later
  searches for edges end at once. Computing control edges takes as long as
  pricing many placements.

  Args:
    problem: A problem for which orders pay (`Problem.orders_pay`).
    placement: Its placement.
  """
  assert problem.simulator is not None  # Orders pay.
  order = control_edges.control_edges(
      problem.graph, placement, problem.simulator,
      control_edges.OrderConfig(
          max_simulated_ops=search_config.DEFAULT.edge_ops, only_wanted=False))
  prices = problem.evaluator.price(problem.graph, placement.devices[None])
  key = prices.keys()[0]
  # The seconds of a step may be 0 or infinite.
  gain = (order.with_edges_s
          / order.fifo_s if 0 < order.fifo_s < math.inf else 1.)
  return (_with_seconds(key,
                        key[-1] * gain), control_edges.attach(placement, order))


def _promising(problem: placer_lib.Problem,
               candidates: Sequence[placement_lib.Placement],
               keys: Sequence[evaluator_lib.Key],
               simulator: simulator_lib.Simulator, orders: Orders) -> list[int]:
  """Indices of candidates to order, the most promising first."""
  config = search_config.DEFAULT.edges
  # A candidate with priorities is fast in its order, even if it is slow first
  # in, first out. So candidates with priorities come first.
  ranked = sorted(
      range(len(keys)), key=lambda row:
      (candidates[row].priorities is None, keys[row]))
  rows = [
      row for row in ranked
      if np.isfinite(keys[row][-1]) and orders(candidates[row]) is not None
  ][:config.promised]
  if len(rows) <= config.ordered:
    return rows
  promised = {
      row:
          _with_seconds(
              keys[row],
              control_edges.promised_s(problem.graph, candidates[row],
                                       simulator)) for row in rows
  }
  return sorted(rows, key=promised.__getitem__)[:config.ordered]


def _with_seconds(key: evaluator_lib.Key, seconds: float) -> evaluator_lib.Key:
  """A key with another step time, in seconds."""
  return (*key[:3], seconds)
