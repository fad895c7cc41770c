"""Time budgets, and what is done once and counts for none of them."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Callable, Iterator


class Stopwatch:
  """Adds up the time that is spent within `running`, on any thread."""

  def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
    """Starts at 0.

    Args:
      clock: Seconds since any moment.
    """
    self._clock = clock
    self._lock = threading.Lock()
    self._total_s = 0.
    self._began: list[float] = []

  @property
  def seconds(self) -> float:
    """All of it so far, with what is going on now."""
    with self._lock:
      now = self._clock()
      return self._total_s + sum(now - began for began in self._began)

  @contextlib.contextmanager
  def running(self) -> Iterator[None]:
    """Counts what is done in the context."""
    began = self._clock()
    with self._lock:
      self._began.append(began)
    try:
      yield
    finally:
      with self._lock:
        self._began.remove(began)
        self._total_s += self._clock() - began


# Loading a policy and running it for the first time.
LOADING = Stopwatch()


class Deadline:
  """When a time budget ends; what is done once puts it off."""

  def __init__(self, budget_s: float,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Begins now.

    Args:
      budget_s: Seconds, without those of `LOADING`.
      clock: Seconds since any moment.
    """
    self._clock = clock
    self._end_s = clock() - LOADING.seconds + budget_s

  @property
  def left_s(self) -> float:
    """Seconds that are left; 0 where none are."""
    return max(self._end_s - (self._clock() - LOADING.seconds), 0.)
