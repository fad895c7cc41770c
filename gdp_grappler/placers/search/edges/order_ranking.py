"""What placements are worth with the control edges that enforce their order."""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Callable, Sequence

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config


class OrderRanking:
  """Ranks placements by their steps with the control edges that pay.

  To find these takes as long as to price dozens of placements, so that what is
  asked twice is remembered.
  """

  def __init__(self, problem: placer_lib.Problem,
               edge_ops: int = search_config.DEFAULT.edge_ops) -> None:
    """Looks for nothing yet.

    Args:
      problem: One whose orders pay (`priority_annealing.pays`), or nothing may
        be asked.
      edge_ops: Ops that a look for control edges may simulate.
    """
    self._problem, self._edge_ops = problem, edge_ops
    self._known: dict[tuple[bytes, bytes | None],
                      tuple[evaluator_lib.Key, placement_lib.Placement]] = {}

  def key(self, placement: placement_lib.Placement) -> evaluator_lib.Key:
    """What a placement ranks by, as of `Prices.keys`."""
    return self._with_edges(placement)[0]

  def orders(self, placement: placement_lib.Placement) -> bool:
    """Whether it has an order, its own or one that edges bring it."""
    return self._with_edges(placement)[1].priorities is not None

  def best(
      self, placements: Sequence[placement_lib.Placement],
      passed: Callable[[], bool] = lambda: False) -> placement_lib.Placement:
    """The first of the best, with the order that its edges enforce, if any do.

    What the priorities of a placement promise, edges keep of one and not of
    another; it may get others of which they keep more.

    Args:
      placements: At least one; the first is asked in any case.
      passed: Whether no more is to be asked of the others; what is known counts
        as before. To look for edges takes a hundred times as long for one
        placement as for another.
    """
    # One after the other: time may be over after each.
    asked = (placement for index, placement in enumerate(placements)
             if not index or _name(placement) in self._known or not passed())
    return min(map(self._with_edges, asked), key=operator.itemgetter(0))[1]

  def _with_edges(
      self, placement: placement_lib.Placement
  ) -> tuple[evaluator_lib.Key, placement_lib.Placement]:
    name = _name(placement)
    if name not in self._known:
      self._known[name] = self._asked(placement)
    return self._known[name]

  def _asked(
      self, placement: placement_lib.Placement
  ) -> tuple[evaluator_lib.Key, placement_lib.Placement]:
    graph = self._problem.graph
    assert self._problem.simulator is not None  # Orders pay.
    order = control_edges.control_edges(
        graph, placement, self._problem.simulator,
        control_edges.OrderConfig(max_simulated_ops=self._edge_ops,
                                  only_wanted=False))
    price = self._problem.evaluator.price(graph, placement.devices[None])
    key = price.keys()[0]
    # Steps may take nothing, or for ever.
    gain = (order.with_edges_s
            / order.fifo_s if 0 < order.fifo_s < math.inf else 1.)
    if order.priorities is not None:
      placement = dataclasses.replace(placement, priorities=order.priorities)
    return (*key[:3], key[3] * gain), placement


def _name(placement: placement_lib.Placement) -> tuple[bytes, bytes | None]:
  priorities = placement.priorities
  return (placement.devices.tobytes(),
          None if priorities is None else priorities.tobytes())
