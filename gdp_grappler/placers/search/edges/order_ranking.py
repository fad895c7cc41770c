"""Ranks placements by their step times with control edges."""

from __future__ import annotations

import math
import operator
from typing import Callable, Sequence

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config


class OrderRanking:
  """Ranks placements by their step times with the control edges that pay.

  Computing control edges takes as long as pricing many placements. So the
  object computes the edges of a placement once. The returned placements keep
  their edges (`control_edges.attach`), so that later searches for edges end at
  once.
  """

  def __init__(self, problem: placer_lib.Problem) -> None:
    """Computes nothing yet.

    Args:
      problem: The problem that is placed. The methods may be called only if
        orders pay for the problem (`Problem.orders_pay`).
    """
    self._problem = problem
    self._known: dict[tuple[bytes, bytes | None],
                      tuple[evaluator_lib.Key, placement_lib.Placement]] = {}

  def key(self, placement: placement_lib.Placement) -> evaluator_lib.Key:
    """Key of a placement with its control edges; see `Prices.keys`."""
    return self._with_edges(placement)[0]

  def orders(self, placement: placement_lib.Placement) -> bool:
    """Whether a placement has priorities, given or enforced by its edges."""
    return self._with_edges(placement)[1].priorities is not None

  def best(
      self, placements: Sequence[placement_lib.Placement],
      passed: Callable[[], bool] = lambda: False) -> placement_lib.Placement:
    """The best placement, with priorities that its edges enforce.

    Control edges enforce the priorities of a placement only in part. The result
    may have other priorities than the argument, if edges enforce these better.

    Args:
      placements: Placements, at least one. The edges of the first one are
        always computed.
      passed: Returns whether the time is over. Then the method computes no more
        edges, and ranks only the placements whose edges it knows. The time that
        edges take differs much between placements.
    """
    # The generator calls `passed` before each placement.
    candidates = (
        placement for index, placement in enumerate(placements)
        if not index or _name(placement) in self._known or not passed())
    return min(map(self._with_edges, candidates), key=operator.itemgetter(0))[1]

  def _with_edges(
      self, placement: placement_lib.Placement
  ) -> tuple[evaluator_lib.Key, placement_lib.Placement]:
    name = _name(placement)
    if name not in self._known:
      self._known[name] = self._compute_edges(placement)
    return self._known[name]

  def _compute_edges(
      self, placement: placement_lib.Placement
  ) -> tuple[evaluator_lib.Key, placement_lib.Placement]:
    graph = self._problem.graph
    assert self._problem.simulator is not None  # Orders pay.
    order = control_edges.control_edges(
        graph, placement, self._problem.simulator,
        control_edges.OrderConfig(
            max_simulated_ops=search_config.DEFAULT.edge_ops,
            only_wanted=False))
    price = self._problem.evaluator.price(graph, placement.devices[None])
    key = price.keys()[0]
    # The seconds of a step may be 0 or infinite.
    gain = (order.with_edges_s
            / order.fifo_s if 0 < order.fifo_s < math.inf else 1.)
    return (*key[:3], key[3] * gain), control_edges.attach(placement, order)


def _name(placement: placement_lib.Placement) -> tuple[bytes, bytes | None]:
  priorities = placement.priorities
  return (placement.devices.tobytes(),
          None if priorities is None else priorities.tobytes())
