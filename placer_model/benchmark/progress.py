"""Progress of a benchmark: a live line on a terminal, else plain lines."""

from __future__ import annotations

import collections
import math
from typing import Any, Sequence

import rich.console
import rich.progress

from gdp_grappler.reports import live_bar
from gdp_grappler.reports import units
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import figures


class Eta:
  """Estimates the remaining seconds from each placer's time so far."""

  def __init__(self, placers: Sequence[str], jobs: int = 1) -> None:
    """Takes the cells to run.

    Args:
      placers: Placer of each cell, with repetitions.
      jobs: Number of cells that run in parallel.
    """
    self._left = collections.Counter(placers)
    self._seconds: dict[str, list[float]] = collections.defaultdict(list)
    self._jobs = jobs

  def ended(self, placer: str, seconds: float | None) -> None:
    """Removes one cell; `seconds` is None if it did not run."""
    self._left[placer] -= 1
    if seconds is not None:
      self._seconds[placer].append(seconds)

  def seconds(self) -> float:
    """Returns the remaining seconds; NaN until a cell has ended.

    A placer without an ended cell is assumed to take the mean of the others.
    """
    known = {name: sum(s) / len(s) for name, s in self._seconds.items()}
    if not known:
      return math.nan
    other = sum(known.values()) / len(known)
    return sum(count * known.get(name, other)
               for name, count in self._left.items()) / self._jobs


class Progress:
  """Shows each cell when it ends; a context manager."""

  def __init__(self, console: rich.console.Console, placers: Sequence[str],
               jobs: int) -> None:
    """Starts with no cell done; there is one cell per item of `placers`."""
    self._console = console
    self._eta = Eta(placers, jobs)
    self._total, self._done = len(placers), 0
    self._live = live_bar.live_bar(console)
    self._bar: rich.progress.TaskID  # Set when the live line starts.

  def __enter__(self) -> Progress:
    if self._live:
      self._live.start()
      self._bar = self._live.add_task('starting', total=self._total, eta='?')
    return self

  def __exit__(self, *unused_error: object) -> None:
    if self._live:
      self._live.stop()

  def show(self, text: str) -> None:
    """Shows what is done between cells."""
    if self._live:
      self._live.update(self._bar, description=text)
    else:
      self._console.print(text, markup=False, highlight=False, soft_wrap=True)

  def skip_finished(self, placers: Sequence[str]) -> None:
    """Counts cells that an earlier run has finished."""
    for placer in placers:
      self._eta.ended(placer, None)
    self._done += len(placers)
    if self._live:
      self._live.update(self._bar, completed=self._done)
    elif placers:
      self.show(f'[{self._done}/{self._total}] kept: {", ".join(placers)}')

  def not_loaded(self, task: str, placers: Sequence[str], message: str) -> None:
    """Counts and shows a task whose cells have all failed."""
    for placer in placers:
      self._eta.ended(placer, None)
    self._done += len(placers)
    self._console.print(
        f'[{self._done}/{self._total}] {task}: FAILED: {message}', markup=False,
        highlight=False, soft_wrap=True)

  def ended(self, record: dict[str, Any], seconds: float) -> None:
    """Shows the record of a cell that took `seconds`."""
    self._done += 1
    self._eta.ended(record['placer'], seconds)
    eta = units.clock(self._eta.seconds())
    text = f'{record["task"]} {record["placer"]}: {_outcome(record)}'
    failed = record['status'] == cell_lib.FAILED
    if self._live:
      self._live.update(self._bar, description=text, completed=self._done,
                        eta=eta)
    if failed or not self._live:
      self._console.print(f'[{self._done}/{self._total}] {text}  ETA {eta}',
                          markup=False, highlight=False, soft_wrap=True)


def _outcome(record: dict[str, Any]) -> str:
  if not figures.has_figures(record):
    return f'{record["status"].upper()}: {record["message"]}'
  return f'{figures.step(record)}, placed in {record["seconds"]:.2f} s'
