"""Latency and bandwidth from the times of transfers of several sizes.

The model is the simulator's: a transfer takes latency + bytes / bandwidth.
Sizes span eight orders of magnitude, so the fit minimizes relative errors.
Absolute errors would depend on the largest tensors alone.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

_ROUNDS = 60  # Rounds of reweighting in a fit.
# A point has the full weight up to this relative error, and less above it
# (Huber, Robust Estimation of a Location Parameter, 1964).
_HUBER = 0.1
# If times do not depend on the size, the largest tensor is assumed to take this
# share of the latency, so that the bandwidth has a value.
_UNSEEN = 0.01


@dataclasses.dataclass(frozen=True)
class Line:
  """seconds = latency + bytes / bandwidth.

  Attributes:
    latency_s: Seconds of a transfer of no bytes.
    bytes_per_s: Bandwidth in bytes per second.
    error: Median relative error of the points.
    worst_error: Largest relative error of the points.
    bounded: Whether `bytes_per_s` is only a lower bound: larger tensors did not
      take measurably longer.
  """

  latency_s: float
  bytes_per_s: float
  error: float
  worst_error: float
  bounded: bool

  def seconds(self, size: float) -> float:
    """Seconds of a transfer of this size in bytes."""
    return self.latency_s + size / self.bytes_per_s


def fit(sizes: Sequence[float], seconds: Sequence[float]) -> Line:
  """Fits a line by relative errors, with less weight for outliers.

  Args:
    sizes: [P], bytes.
    seconds: [P], seconds of a transfer of this size. Times that are not
      positive were too short to be measured, and are left out.

  Raises:
    ValueError: fewer than two sizes have a positive time.
  """
  x, y = np.asarray(sizes, np.float64), np.asarray(seconds, np.float64)
  known = np.isfinite(y) & (y > 0)
  x, y = x[known], y[known]
  if len(set(x.tolist())) < 2:
    raise ValueError('Two sizes with a positive time are needed for a line.')
  weights = np.ones(len(x))
  for _ in range(_ROUNDS):
    latency_s, per_byte = _weighted(x, y, weights)
    errors = np.abs((latency_s + per_byte * x) / y - 1)
    weights = _HUBER / np.maximum(errors, _HUBER)
  floor = _UNSEEN * max(latency_s, y.min()) / x.max()
  bounded = per_byte < floor
  per_byte = max(per_byte, floor)
  errors = np.abs((latency_s + per_byte * x) / y - 1)
  return Line(float(latency_s), float(1 / per_byte), float(np.median(errors)),
              float(errors.max()), bool(bounded))


def _weighted(x: np.ndarray, y: np.ndarray,
              weights: np.ndarray) -> tuple[float, float]:
  """Latency and seconds per byte, at least 0, of weighted least squares.

  Args:
    x: [P], bytes.
    y: [P], seconds.
    weights: [P], weights of the squares of relative errors.
  """
  root = np.sqrt(weights)
  columns = np.stack([root / y, root * x / y], axis=1)
  scale = columns.max(axis=0)
  solution = np.linalg.lstsq(columns / scale, root, rcond=None)[0] / scale
  if (solution >= 0).all():
    return float(solution[0]), float(solution[1])
  # Otherwise one of the two is 0. Take the better line.
  alone = [float(root @ column / (column @ column)) for column in columns.T]
  lost = [np.sum((root - c * v)**2) for c, v in zip(columns.T, alone)]
  return (alone[0], 0.) if lost[0] <= lost[1] else (0., alone[1])
