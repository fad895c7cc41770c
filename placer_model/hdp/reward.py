"""Reward, baseline and advantage of HDP's policy gradient (section 2.2)."""

from __future__ import annotations

import numpy as np


def rewards(seconds: np.ndarray, unit_s: float,
            failing_signal: float) -> np.ndarray:
  """Returns minus the square root of the run time.

  Args:
    seconds: float [S], run times; infinite for a placement that fails, because
      of memory or otherwise.
    unit_s: Unit of run times, in seconds.
    failing_signal: Run time that a failing placement is charged, in that unit.
      No placement is charged more.

  Returns:
    float64 [S].
  """
  return -np.sqrt(np.minimum(np.asarray(seconds) / unit_s, failing_signal))


class MovingBaseline:
  """An exponential moving average of the mean reward of a step.

  Attributes:
    value: Baseline of the next step. None before the first step, whose baseline
      is its own mean reward.
  """

  def __init__(self, decay: float) -> None:
    """Initializes a MovingBaseline.

    Args:
      decay: Weight of the old average.
    """
    self.value: float | None = None
    self._decay = decay
    self._square: float | None = None

  def advantages(self, values: np.ndarray) -> np.ndarray:
    """Returns normalized advantages, and updates the baseline.

    The published implementation does not normalize.

    Args:
      values: float [S], rewards of a step.

    Returns:
      float64 [S], values minus the baseline, over the root of a moving average
      of their squares.
    """
    mean = float(values.mean())
    if self.value is None:
      self.value = mean
    result = values - self.value
    self.value = self._moved(self.value, mean)
    square = float((result**2).mean())
    self._square = square if self._square is None else self._moved(
        self._square, square)
    return result / max(self._square**0.5, 1e-8)

  def _moved(self, old: float, new: float) -> float:
    return self._decay * old + (1 - self._decay) * new
