"""Times steps, to decide whether placed steps are faster."""

from __future__ import annotations

import statistics
import time
from typing import Any, Callable

# Number of first steps that do not count, because they build kernels.
_WARM_UP = 2
# Number of first steps that do not count if XLA runs inside each device. XLA
# compiles a cluster in the cluster's second run.
WARM_UP_OF_CLUSTERS = 3
# Number of steps that are counted.
_STEPS = 6
# The fewest steps that are counted. Slow steps differ less from each other and
# cost the user more, so few are enough.
_FEWEST_STEPS = 4
# Seconds of counted steps after which the fewest are enough.
_ENOUGH_S = 10.


class StepTiming:
  """Times a few steps.

  The number of steps is even. In an epoch of two batches every second batch may
  be small. The median of an odd number of steps could then be the time of a
  small batch for one way to run the step, and of a full batch for the next way.
  """

  def __init__(self, warm_up: int = _WARM_UP) -> None:
    """Times nothing yet.

    Args:
      warm_up: Number of first steps that are not counted.
    """
    self._to_skip = warm_up
    self._skipped_s: list[float] = []
    self._seconds: list[float] = []

  @property
  def is_done(self) -> bool:
    """Whether enough steps were timed."""
    count = len(self._seconds)
    is_slow = sum(self._seconds) > _ENOUGH_S
    return count % 2 == 0 and count >= (_FEWEST_STEPS if is_slow else _STEPS)

  @property
  def median_s(self) -> float:
    """Median seconds of the timed steps."""
    return statistics.median(self._seconds)

  @property
  def steps(self) -> int:
    """Number of timed steps."""
    return len(self._seconds)

  @property
  def compile_s(self) -> float:
    """Extra seconds of the first steps over the same number of timed steps."""
    usual_s = self.median_s * len(self._skipped_s)
    return max(sum(self._skipped_s) - usual_s, 0.)

  def run(self, step: Callable[[], Any]) -> Any:
    """Runs and times a step, and returns its result."""
    start = time.perf_counter()
    result = step()
    _wait_for(result)
    seconds = time.perf_counter() - start
    if self._to_skip:
      self._to_skip -= 1
      self._skipped_s.append(seconds)
    else:
      self._seconds.append(seconds)
    return result


def _wait_for(result: Any) -> None:
  """Waits until the devices have finished."""
  import tensorflow as tf
  for tensor in tf.nest.flatten(result):
    if hasattr(tensor, 'numpy'):
      tensor.numpy()
  tf.test.experimental.sync_devices()
