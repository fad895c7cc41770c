"""An evaluator whose prices take seconds of a simulated clock."""

from __future__ import annotations

import math

from gdp_grappler.evaluation import evaluator as evaluator_lib


class SlowPrices(evaluator_lib.Wrapper):
  """An evaluator that moves its clock by a fixed time per price.

  Attributes:
    now: Time of the clock, in seconds.
  """

  def __init__(self, evaluator, seconds):
    super().__init__(evaluator)
    self.now, self._seconds = 0., seconds

  def clock(self):
    """The clock."""
    return self.now

  def _take(self, count):
    self.now += count * self._seconds

  def evaluate(self, graph, placement):
    """See `Evaluator`."""
    self._take(1)
    return self._evaluator.evaluate(graph, placement)

  def price(self, graph, devices, priorities=None):
    """See `Evaluator`."""
    self._take(len(devices))
    return self._evaluator.price(graph, devices, priorities)

  def price_closely(self, graph, devices, priorities=None):
    """See `Evaluator`."""
    self._take(len(devices))
    return self._evaluator.price_closely(graph, devices, priorities)

  def price_groups(self, graph, devices, ceiling_s=math.inf):
    """See `Evaluator`."""
    self._take(len(devices))
    return self._evaluator.price_groups(graph, devices, ceiling_s)

  def price_in_order(self, graph, devices, priorities, ceiling_s=math.inf):
    """See `Evaluator`."""
    self._take(len(devices))
    return self._evaluator.price_in_order(graph, devices, priorities, ceiling_s)
