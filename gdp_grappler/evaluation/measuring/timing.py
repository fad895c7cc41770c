"""Times a step until its median is stable."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Callable

import numpy as np

_LEAST_S = 0.1  # Least total seconds of the timed steps.
# The 95 % confidence interval of a median is about 1.57 interquartile ranges
# over the root of the count, to either side (McGill, Tukey and Larsen,
# "Variations of Box Plots", The American Statistician 32(1), 1978).
_NOTCH = 1.57


@dataclasses.dataclass(frozen=True)
class Schedule:
  """Number of runs of a step.

  Attributes:
    warmup: Steps before the clock starts.
    steps: Steps of a round; rounds are repeated until their median is stable.
    budget_s: Seconds after which no further round begins.
    tolerance: Relative error of a stable median. A median is stable if the last
      round changed it by at most this share, and if half the width of its 95 %
      confidence interval is at most this share.
  """

  warmup: int
  steps: int
  budget_s: float
  tolerance: float


@dataclasses.dataclass(frozen=True)
class Clocked:
  """Statistics of the seconds of a step.

  Attributes:
    median_s: Median of the seconds.
    spread_s: Interquartile range of the seconds.
    num_steps: Number of steps.
  """

  median_s: float
  spread_s: float
  num_steps: int


def clock(step: Callable[[], None], schedule: Schedule,
          now: Callable[[], float] = time.perf_counter) -> Clocked:
  """Runs a step until its median is stable.

  Args:
    step: Function that runs the step once.
    schedule: Number of runs.
    now: Function that returns the time in seconds.
  """
  for _ in range(schedule.warmup):
    step()
  seconds: list[float] = []
  last, begin = Clocked(math.inf, 0., 0), now()
  while True:
    for _ in range(schedule.steps):
      start = now()
      step()
      seconds.append(now() - start)
    result, spent = summarize(seconds), now() - begin
    stable = spent >= _LEAST_S and is_stable(last, result, schedule.tolerance)
    if stable or spent >= schedule.budget_s:
      return result
    last = result


def summarize(seconds: list[float]) -> Clocked:
  """Median and interquartile range of the seconds."""
  low, median, high = np.percentile(seconds, (25, 50, 75))
  return Clocked(float(median), float(high - low), len(seconds))


def is_stable(before: Clocked, after: Clocked, tolerance: float) -> bool:
  """Whether the median is stable, so that no further round is needed.

  Args:
    before: Statistics of all rounds but the last one.
    after: Statistics of all rounds.
    tolerance: Relative error, see `Schedule`.
  """
  error_s = tolerance * after.median_s
  notch_s = _NOTCH * after.spread_s / math.sqrt(after.num_steps)
  return abs(after.median_s - before.median_s) <= error_s and notch_s <= error_s
