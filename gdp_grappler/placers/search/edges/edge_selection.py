"""Takes the best of several placements, with control edges where they go.

What is compared is the robust price, shorter by what edges are predicted to
save of the step.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.placers import placer as placer_lib

# Placements for which it is asked what an order promises, the best without, and
# those whose control edges are looked for, the ones that promise most.
_ASKED, _ORDERED = 4, 2

# When to add control edges to a placement; None for never.
Orders = Callable[[placement_lib.Placement], control_edges.OrderConfig | None]


@dataclasses.dataclass(frozen=True, eq=False)
class Choice:
  """A placement, and the order that goes with it, if one does."""

  placement: placement_lib.Placement
  order: control_edges.Order | None = None


def proposals(
    placer: placer_lib.Placer,
    problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
  """All that a placer has to say."""
  if isinstance(placer, placer_lib.Proposer):
    return placer.proposals(problem)
  return (placer.place(problem),)


def best(problem: placer_lib.Problem,
         candidates: Sequence[placement_lib.Placement],
         simulator: simulator_lib.Simulator, orders: Orders) -> Choice:
  """The first of those that nobody beats.

  Args:
    problem: What is to be placed.
    candidates: Placements, at least one.
    simulator: Of the problem's cluster; predicts what edges bring.
    orders: Says which candidates are to be ordered.
  """
  keys = problem.evaluator.price(problem.graph,
                                 np.stack([c.devices for c in candidates
                                          ])).keys()
  found: dict[int, control_edges.Order] = {}
  for row in _promising(problem, candidates, keys, simulator, orders):
    order = order_of(problem, candidates[row], simulator, orders)
    if order is not None:
      keys[row] = _within(keys[row],
                          keys[row][-1] * order.with_edges_s / order.fifo_s)
      found[row] = order
  row = keys.index(min(keys))
  return Choice(candidates[row], found.get(row))


def order_of(problem: placer_lib.Problem, placement: placement_lib.Placement,
             simulator: simulator_lib.Simulator,
             orders: Orders) -> control_edges.Order | None:
  """Control edges that are wanted and predicted to pay; None if none are."""
  config = orders(placement)
  if config is None:
    return None
  order = control_edges.control_edges(problem.graph, placement, simulator,
                                      config)
  return order if len(order.control_edges) else None


def _promising(problem: placer_lib.Problem,
               candidates: Sequence[placement_lib.Placement],
               keys: Sequence[evaluator_lib.Key],
               simulator: simulator_lib.Simulator, orders: Orders) -> list[int]:
  """Rows for which to look for an order, the most promising first."""
  # What was found under priorities is fast in its order, whatever it is first
  # in, first out.
  ranked = sorted(
      range(len(keys)), key=lambda row:
      (candidates[row].priorities is None, keys[row]))
  rows = [
      row for row in ranked
      if np.isfinite(keys[row][-1]) and orders(candidates[row]) is not None
  ][:_ASKED]
  if len(rows) <= _ORDERED:
    return rows
  promised = {
      row:
          _within(
              keys[row],
              control_edges.promised_s(problem.graph, candidates[row],
                                       simulator)) for row in rows
  }
  return sorted(rows, key=promised.__getitem__)[:_ORDERED]


def _within(key: evaluator_lib.Key, seconds: float) -> evaluator_lib.Key:
  """The same but for the seconds of the step."""
  return (*key[:3], seconds)
