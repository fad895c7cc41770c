"""Limits the time of a search by the time that it could save."""

from __future__ import annotations

from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers.search import search_config


class SearchWorth:
  """The seconds that a search is worth.

  No placement is faster than the lower bound. So the gain of a search is at
  most the step of the best placement so far, less the lower bound.
  """

  def __init__(self, bound_s: float, budget_s: float) -> None:
    """Sets the limits.

    Args:
      bound_s: Lower bound of the step time, in seconds.
      budget_s: Seconds that the search may take at most.
    """
    self._bound_s, self._budget_s = bound_s, budget_s

  def seconds(self, prices: evaluator_lib.Prices) -> float:
    """Seconds that a search is worth if it begins with the best placement.

    Args:
      prices: Prices of the placements so far, at least one.
    """
    best = prices.best()
    if not prices.valid[best]:
      return self._budget_s  # A placement that runs is worth all of the time.
    gain_s = float(prices.seconds[best]) - self._bound_s
    return min(self._budget_s, max(search_config.DEFAULT.time.steps * gain_s,
                                   0.))
