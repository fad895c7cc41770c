"""When a step has been timed often enough."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Callable

import numpy as np

_LEAST_S = 0.1  # Of clocked steps; a shorter time says little.
# The 95 % confidence interval of a median is about 1.57 interquartile ranges
# over the root of the count, to either side (McGill, Tukey and Larsen,
# "Variations of Box Plots", The American Statistician 32(1), 1978).
_NOTCH = 1.57


@dataclasses.dataclass(frozen=True)
class Schedule:
  """How often to run a step.

  Attributes:
    warmup: Steps before the clock starts.
    steps: Steps of a round; rounds go on until their median is stable.
    budget_s: No further round once this has passed.
    tolerance: A median is stable when the last round moved it by less than
      this share, and when its 95 % confidence interval is as narrow to either
      side.
  """

  warmup: int
  steps: int
  budget_s: float
  tolerance: float


@dataclasses.dataclass(frozen=True)
class Clocked:
  """Seconds of a step.

  Attributes:
    median_s: The median.
    spread_s: The interquartile range.
    num_steps: How many steps they are of.
  """

  median_s: float
  spread_s: float
  num_steps: int


def clock(step: Callable[[], None], schedule: Schedule,
          now: Callable[[], float] = time.perf_counter) -> Clocked:
  """Runs a step until its median is stable.

  Args:
    step: What to run.
    schedule: How often.
    now: The clock, in seconds.
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
  """Median and interquartile range."""
  low, median, high = np.percentile(seconds, (25, 50, 75))
  return Clocked(float(median), float(high - low), len(seconds))


def is_stable(before: Clocked, after: Clocked, tolerance: float) -> bool:
  """Whether one more round would say the same.

  Args:
    before: What was known before the last round.
    after: What is known now.
    tolerance: See `Schedule`.
  """
  error_s = tolerance * after.median_s
  notch_s = _NOTCH * after.spread_s / math.sqrt(after.num_steps)
  return abs(after.median_s - before.median_s) <= error_s and notch_s <= error_s
