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


def advantages(values: np.ndarray, count: int, total: float) -> np.ndarray:
  """Subtracts the paper's bias term: the mean reward of all previous trials.

  Args:
    values: float [K], rewards.
    count: Number of previous trials. Without any, the term is the values' mean.
    total: Sum of their rewards.
  """
  return values - (total / count if count else values.mean())
