"""Until when something has to be done, and what counts as time spent."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
from typing import Callable, Iterator


def still() -> float:
  """A clock that stands: what it should end has to end by what it counts."""
  return 0.


@dataclasses.dataclass(frozen=True)
class Deadline:
  """A moment; handed down to whoever takes a part of the time until then.

  Attributes:
    at_s: By the clock; infinite if there is no hurry.
    clock: Seconds since any moment.
  """

  at_s: float = math.inf
  clock: Callable[[], float] = time.monotonic

  @property
  def left_s(self) -> float | None:
    """Seconds until then, not less than 0; None if there is no hurry."""
    return None if self.at_s == math.inf else max(self.at_s - self.clock(), 0.)

  @property
  def remaining_s(self) -> float:
    """Seconds until then, not less than 0; infinite if there is no hurry."""
    return max(self.at_s - self.clock(), 0.)

  @property
  def passed(self) -> bool:
    """Whether it is over."""
    return self.clock() >= self.at_s

  def spent(self, start_s: float) -> float:
    """Share, from 0 to 1, of the time from `start_s` that is over.

    Args:
      start_s: By the clock.

    Returns:
      0 if there is no hurry.
    """
    if self.at_s == math.inf:
      return 0.
    if self.passed:
      return 1.
    return max(self.clock() - start_s, 0.) / (self.at_s - start_s)

  def earlier(self, seconds: float) -> Deadline:
    """So many seconds sooner, for what comes afterwards."""
    return dataclasses.replace(self, at_s=self.at_s - seconds)

  def after(self, share: float) -> Deadline:
    """When a share, from 0 to 1, of what is left will be over."""
    if self.left_s is None:
      return self
    return dataclasses.replace(self, at_s=self.clock() + share * self.left_s)


def within(seconds: float | None,
           clock: Callable[[], float] = time.monotonic) -> Deadline:
  """So many seconds from now; None: whenever."""
  return Deadline(math.inf if seconds is None else clock() + seconds, clock)


NEVER = Deadline()


class Stopwatch:
  """Adds up the time in which at least one thread is within `running`."""

  def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
    """Starts at 0.

    Args:
      clock: Seconds since any moment.
    """
    self._clock = clock
    self._lock = threading.Lock()
    self._total_s = 0.
    self._running, self._began_s = 0, 0.

  @property
  def seconds(self) -> float:
    """All of the time so far, up to now if a thread is within `running`."""
    with self._lock:
      return self._total_s + (self._clock()
                              - self._began_s if self._running else 0.)

  @contextlib.contextmanager
  def running(self) -> Iterator[None]:
    """Counts the time of the context; time of several contexts counts once."""
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


# Loading a policy and running it for the first time: it is done once, and no
# time budget pays for it.
LOADING = Stopwatch()


def without_loading(seconds: float,
                    clock: Callable[[], float] = time.monotonic) -> Deadline:
  """So many seconds from now, not counting those of `LOADING`."""
  return within(seconds, lambda: clock() - LOADING.seconds)
