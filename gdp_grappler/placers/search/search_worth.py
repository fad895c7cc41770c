"""How long a search may take, by how far it could get."""

from __future__ import annotations

from gdp_grappler.evaluation import bounds
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import placer as placer_lib

# A search takes no longer than so many steps of the program could gain.
STEPS = 10_000


class Worth:
  """What a search is worth: no placement is faster than the lower bound."""

  def __init__(self, problem: placer_lib.Problem, budget_s: float) -> None:
    """Computes the bound.

    Args:
      problem: What is to be placed.
      budget_s: Seconds that it may take at most.
    """
    self._budget_s = budget_s
    self._bound_s = bounds.lower_bound(problem.graph, problem.cluster,
                                       problem.op_seconds).seconds

  def seconds(self, prices: evaluator_lib.Prices) -> float:
    """Seconds that a search is worth that begins with the best of these."""
    best = prices.best()
    if not prices.valid[best]:
      return self._budget_s  # What does not run is worth all.
    gain_s = float(prices.seconds[best]) - self._bound_s
    return min(self._budget_s, max(STEPS * gain_s, 0.))
