"""How long a search may take, by how far it could get."""

from __future__ import annotations

from gdp_grappler.evaluation import evaluator as evaluator_lib

# A search takes no longer than so many steps of the program could gain.
STEPS = 10_000


class Worth:
  """What a search is worth: no placement is faster than the lower bound."""

  def __init__(self, bound_s: float, budget_s: float) -> None:
    """Sets the limits.

    Args:
      bound_s: Lower bound of the step time, in seconds.
      budget_s: Seconds that the search may take at most.
    """
    self._bound_s, self._budget_s = bound_s, budget_s

  def seconds(self, prices: evaluator_lib.Prices) -> float:
    """Seconds that a search is worth that begins with the best of these."""
    best = prices.best()
    if not prices.valid[best]:
      return self._budget_s  # What does not run is worth all.
    gain_s = float(prices.seconds[best]) - self._bound_s
    return min(self._budget_s, max(STEPS * gain_s, 0.))
