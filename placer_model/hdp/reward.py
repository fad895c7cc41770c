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
    value: Baseline of the next step. None before the first step, if no initial
      value is given; the baseline is then the mean reward of that step.
  """

  def __init__(self, decay: float, value: float | None = None,
               normalize: bool = False) -> None:
    """Initializes a MovingBaseline.

    Args:
      decay: Weight of the old average.
      value: Initial value, or None.
      normalize: Whether to divide advantages by the root of a moving average of
        their squares.
    """
    self.value = value
    self._decay, self._normalize = decay, normalize
    self._square: float | None = None

  def advantages(self, values: np.ndarray) -> np.ndarray:
    """Returns values minus the baseline, float64 [S], and updates it."""
    mean = float(values.mean())
    if self.value is None:
      self.value = mean
    result = values - self.value
    self.value = self._moved(self.value, mean)
    if not self._normalize:
      return result
    square = float((result**2).mean())
    self._square = square if self._square is None else self._moved(
        self._square, square)
    return result / max(self._square**0.5, 1e-8)

  def _moved(self, old: float, new: float) -> float:
    return self._decay * old + (1 - self._decay) * new
