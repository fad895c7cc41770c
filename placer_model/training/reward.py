"""Reward and advantage of a placement (GDP, ICLR 2020 submission, 4.1)."""

from __future__ import annotations

import numpy as np

INVALID_REWARD = -10.0


def rewards(step_time_s: np.ndarray, valid: np.ndarray,
            reference_s: float) -> np.ndarray:
  """Minus the square root of the normalised run time; -10 if invalid.

  Args:
    step_time_s: float [K]; ignored where invalid.
    valid: bool [K].
    reference_s: Best run time of a baseline, the unit of time.

  Returns:
    float64 [K].
  """
  ratio = np.where(valid, step_time_s, reference_s) / reference_s
  return np.where(valid, -np.sqrt(ratio), INVALID_REWARD)


class MeanOfPreviousTrials:
  """The paper's bias term: the average reward of all previous trials.

  Attributes:
    count: Trials so far.
    total: Sum of their rewards.
  """

  def __init__(self, count: int = 0, total: float = 0.0) -> None:
    self.count, self.total = count, total

  def advantages(self, values: np.ndarray) -> np.ndarray:
    """float64 [K], `values - mean of all trials before them`.

    The first trials of a run have no predecessors; their own mean stands in.
    Afterwards the values count as previous trials.
    """
    mean = self.total / self.count if self.count else values.mean()
    self.count += values.size
    self.total += float(values.sum())
    return values - mean
