"""Deadlines of work, and stopwatches for time that no time budget includes."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from typing import Callable, Iterator


def still() -> float:
  """A clock that stands still.

  No deadline of this clock passes, so work has to end after a number of steps.
  """
  return 0.


@dataclasses.dataclass(frozen=True)
class Deadline:
  """The moment at which work has to end.

  Attributes:
    at_s: The moment, in seconds of `clock`; infinite if there is no deadline.
    clock: Function that returns the seconds since a fixed moment.
  """

  at_s: float = math.inf
  clock: Callable[[], float] = time.monotonic

  @property
  def left_s(self) -> float | None:
    """Seconds until the deadline, at least 0; None without a deadline."""
    return None if self.at_s == math.inf else max(self.at_s - self.clock(), 0.)

  @property
  def remaining_s(self) -> float:
    """Seconds until the deadline, at least 0; infinite without a deadline."""
    return max(self.at_s - self.clock(), 0.)

  @property
  def passed(self) -> bool:
    """Whether the deadline is over."""
    return self.clock() >= self.at_s

  def spent(self, start_s: float) -> float:
    """Returns the share of the time from a start to the deadline that is over.

    Args:
      start_s: The start, in seconds of the clock.

    Returns:
      From 0 to 1; 0 without a deadline.
    """
    if self.at_s == math.inf:
      return 0.
    if self.passed:
      return 1.
    return max(self.clock() - start_s, 0.) / (self.at_s - start_s)

  def earlier(self, seconds: float) -> Deadline:
    """Returns an earlier deadline, which leaves `seconds` for later work."""
    return dataclasses.replace(self, at_s=self.at_s - seconds)

  def after(self, share: float) -> Deadline:
    """Returns the moment at which a share of the remaining time will be over.

    Args:
      share: From 0 to 1.
    """
    if self.left_s is None:
      return self
    return dataclasses.replace(self, at_s=self.clock() + share * self.left_s)


def within(seconds: float | None,
           clock: Callable[[], float] = time.monotonic) -> Deadline:
  """Returns the deadline in `seconds` from now; None means no deadline."""
  return Deadline(math.inf if seconds is None else clock() + seconds, clock)


NEVER = Deadline()


class Stopwatch:
  """Adds up the time in which at least one thread is within `running`."""

  def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
    """Starts at 0.

    Args:
      clock: Function that returns the seconds since a fixed moment.
    """
    self._clock = clock
    self._lock = threading.Lock()
    self._total_s = 0.
    self._running, self._began_s = 0, 0.

  @property
  def seconds(self) -> float:
    """The total time so far, including that of a thread within `running`."""
    with self._lock:
      return self._total_s + (self._clock()
                              - self._began_s if self._running else 0.)

  @contextlib.contextmanager
  def running(self) -> Iterator[None]:
    """Counts the time of the context. Overlapping contexts count once."""
    with self._lock:
      if not self._running:
        self._began_s = self._clock()
      self._running += 1
    try:
      yield
    finally:
      with self._lock:
        self._running -= 1
        if not self._running:
          self._total_s += self._clock() - self._began_s


# Time of work that is done once per process, such as loading a policy and
# running it for the first time. No time budget includes it.
LOADING = Stopwatch()


def without_loading(seconds: float,
                    clock: Callable[[], float] = time.monotonic) -> Deadline:
  """Returns the deadline in `seconds` from now, without time of `LOADING`."""
  return within(seconds, lambda: clock() - LOADING.seconds)
