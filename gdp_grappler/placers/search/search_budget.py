"""How long a search may take, by what it prices and by the clock."""

from __future__ import annotations

import math
import time
from typing import Callable


class SearchBudget:
  """How far a search has come, by what it prices and by the clock.

  Attributes:
    evaluations: Placements to price.
  """

  def __init__(self, evaluations: int, seconds: float | None = None,
               grace: float = 0.,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Starts the clock.

    Args:
      evaluations: Placements to price.
      seconds: What that may take; None for any time. A search that the clock
        hurries or stops depends on the speed of the machine.
      grace: Share of the seconds in which the clock does not count yet.
      clock: Seconds since any moment.
    """
    self.evaluations, self._seconds = evaluations, seconds
    self._grace, self._clock, self._kept_s = grace, clock, 0.
    self._begin = clock()

  def progress(self, evaluations: int) -> float:
    """From 0 to 1, when it is over, or more."""
    if evaluations >= self.evaluations:
      return 1.
    progress = evaluations / self.evaluations
    if self._seconds is None:
      return progress
    if not self._seconds:
      return 1.
    spent = self.spent_s / self._seconds
    return max(progress, (spent - self._grace) / (1 - self._grace))

  @property
  def passed(self) -> bool:
    """Whether all its time is over, and what was kept of it, too."""
    return (self._seconds is not None and
            self.spent_s >= self._seconds + self._kept_s)

  @property
  def spent_s(self) -> float:
    """Seconds since it began."""
    return self._clock() - self._begin

  def affordable(self, each_s: float, most: int, share: float = 1.) -> int:
    """How many there is time for of what takes so long each.

    At least one, and as many as are wanted where the clock does not count.

    Args:
      each_s: Seconds.
      most: How many are wanted.
      share: Of the time that is left, which they may take.
    """
    if self._seconds is None or self.spent_s <= self._grace * self._seconds:
      return most
    left_s = share * max(self._seconds - self.spent_s, 0.)
    return int(min(max(left_s / max(each_s, 1e-9), 1), most))

  def part(self, share: float, most: int) -> SearchBudget:
    """Begins now, its grace too, and ends sooner.

    Args:
      share: Of all that may be priced, and of the time.
      most: Placements to price.
    """
    seconds = None if self._seconds is None else share * self._seconds
    return SearchBudget(min(math.ceil(share * self.evaluations), most), seconds,
                        self._grace, self._clock)

  def keep(self, seconds: float) -> None:
    """Ends so much sooner, for what is left to do afterwards."""
    if self._seconds is not None:
      self._kept_s += min(seconds, self._seconds)
      self._seconds = max(self._seconds - seconds, 0.)
