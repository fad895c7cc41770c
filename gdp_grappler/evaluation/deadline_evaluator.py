"""An evaluator that prices placements until a deadline."""

from __future__ import annotations

import hashlib

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.graph import op_graph

NOT_RUN = 'it was not run, as the time budget was over'


class DeadlineEvaluator(evaluator_lib.Wrapper):
  """Passes on the prices of another evaluator until a deadline.

  The class serves evaluators whose prices take seconds, so that no search needs
  to look at the clock. Placements that were priced before keep their prices.
  After the deadline a new placement gets a violation of kind 'run'. The first
  placement is always priced, so that there is a result. An object serves one
  graph.

  Attributes:
    cluster: Cluster whose devices placements index.
    simulated: Whether the wrapped evaluator computes its prices.
    skipped: Number of prices that were refused after the deadline.
  """

  def __init__(self, evaluator: evaluator_lib.Evaluator,
               deadline: deadlines.Deadline) -> None:
    """Wraps an evaluator.

    Args:
      evaluator: Evaluator that prices the placements.
      deadline: Moment after which no new placement is priced.
    """
    super().__init__(evaluator)
    self.skipped = 0
    self._deadline = deadline
    self._known: dict[bytes, evaluator_lib.Evaluation] = {}

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    """See `evaluator.Evaluator`."""
    key = _key(placement)
    if key not in self._known:
      if self._known and self._deadline.passed:
        self.skipped += 1
        return evaluator_lib.Evaluation.broken(
            [placement_lib.Violation('run', NOT_RUN)], self.cluster,
            self.simulated)
      self._known[key] = self._evaluator.evaluate(graph, placement)
    return self._known[key]


def _key(placement: placement_lib.Placement) -> bytes:
  result = hashlib.sha256(np.asarray(placement.devices, np.int32).tobytes())
  if placement.priorities is not None:
    result.update(np.asarray(placement.priorities, np.float64).tobytes())
  return result.digest()
