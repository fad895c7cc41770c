"""Reward and advantage of a placement (GDP, ICLR 2020 submission, 4.1)."""

from __future__ import annotations

import numpy as np

INVALID_REWARD = -10.0  # The reward of a placement that does not run (4.1).


def rewards(step_time_s: np.ndarray, valid: np.ndarray,
            reference_s: float) -> np.ndarray:
  """Returns minus the square root of the normalised run time.

  Args:
    step_time_s: float [K], seconds; ignored where invalid.
    valid: bool [K], whether each placement is valid.
    reference_s: Best run time of a baseline in seconds, the unit of time.

  Returns:
    float64 [K]; `INVALID_REWARD` where invalid.
  """
  ratio = np.where(valid, step_time_s, reference_s) / reference_s
  return np.where(valid, -np.sqrt(ratio), INVALID_REWARD)


class MeanOfPreviousTrials:
  """The paper's bias term: the average reward of all previous trials.

  Attributes:
    count: Number of trials so far.
    total: Sum of their rewards.
  """

  def __init__(self, count: int = 0, total: float = 0.0) -> None:
    self.count, self.total = count, total

  def advantages(self, values: np.ndarray) -> np.ndarray:
    """Subtracts the mean of all previous trials, float64 [K].

    The first trials of a run have no predecessors, so their own mean is
    subtracted. The values then count as previous trials.
    """
    mean = self.total / self.count if self.count else values.mean()
    self.count += values.size
    self.total += float(values.sum())
    return values - mean
