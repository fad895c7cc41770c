"""The budget of a search: a number of prices, and seconds."""

from __future__ import annotations

import math
import time
from typing import Callable


class SearchBudget:
  """The budget of a search, and the progress of the search through it.

  Attributes:
    evaluations: Placements that the search may price.
  """

  def __init__(self, evaluations: int, seconds: float | None = None,
               grace: float = 0.,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Starts the clock.

    Args:
      evaluations: Placements that the search may price.
      seconds: Seconds that the search may take; None for no limit. The result
        of a search that the clock ends depends on the speed of the machine.
      grace: Share of the seconds, at the start, in which only the number of
        placements counts and not the clock.
      clock: Returns seconds since a fixed moment.
    """
    self.evaluations, self._seconds = evaluations, seconds
    self._grace, self._clock, self._kept_s = grace, clock, 0.
    self._begin, self._seen_s = clock(), 0.

  def progress(self, evaluations: int) -> float:
    """Progress of the search, from 0 to 1 or more at its end.

    Args:
      evaluations: Placements that the search has priced.
    """
    if evaluations >= self.evaluations:
      return 1.
    progress = evaluations / self.evaluations
    if self._seconds is None:
      return progress
    if not self._seconds:
      return 1.
    self._seen_s = self.spent_s
    spent = self._seen_s / self._seconds
    return max(progress, (spent - self._grace) / (1 - self._grace))

  def has_left(self, seconds: float) -> bool:
    """Whether there is time for a task.

    The time that `keep` reserved counts as left. During the grace there is time
    for every task.

    Args:
      seconds: Seconds of the task.
    """
    if self._seconds is None or self.spent_s <= self._grace * self._seconds:
      return True
    return self.spent_s + seconds <= self._seconds + self._kept_s

  @property
  def seen_s(self) -> float:
    """Seconds from the start to the last `progress`; 0 without a time limit."""
    return self._seen_s

  def ends_within(self, seconds: float) -> bool:
    """Whether the clock ends the search within this time, or has ended it.

    The method does not read the clock. The seconds count from the last call of
    `progress`.

    Args:
      seconds: Seconds of a task that nothing can stop.
    """
    if self._seconds is None or self._seen_s <= self._grace * self._seconds:
      return False
    return self._seen_s + seconds > self._seconds

  @property
  def spent_s(self) -> float:
    """Seconds since the start."""
    return self._clock() - self._begin

  def affordable(self, each_s: float, most: int, share: float = 1.) -> int:
    """Number of tasks of equal length that there is time for; at least one.

    During the grace there is time for all tasks.

    Args:
      each_s: Seconds of a task.
      most: Number of all tasks.
      share: Share of the remaining time that the tasks may take.
    """
    if self._seconds is None or self.spent_s <= self._grace * self._seconds:
      return most
    left_s = share * max(self._seconds - self.spent_s, 0.)
    return int(min(max(left_s / max(each_s, 1e-9), 1), most))

  def part(self, share: float) -> SearchBudget:
    """A smaller budget. The budget and its grace start now.

    Args:
      share: Share of the placements and of the seconds.
    """
    seconds = None if self._seconds is None else share * self._seconds
    return SearchBudget(math.ceil(share * self.evaluations), seconds,
                        self._grace, self._clock)

  def keep(self, seconds: float) -> None:
    """Reserves seconds at the end, for work after the search."""
    if self._seconds is not None:
      self._kept_s += min(seconds, self._seconds)
      self._seconds = max(self._seconds - seconds, 0.)
