"""Progress of a run: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import math
import time
from typing import Callable

import numpy as np
import rich.console
import rich.progress

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.reports import live_bar
from gdp_grappler.reports import units
from placer_model.training import run_state
from placer_model.training import trainer as trainer_lib

_PLAIN_EVERY_S = 10.0  # Seconds between two lines if the output is no terminal.


def teller(console: rich.console.Console) -> Callable[[str], None]:
  """Returns a function that prints a line without markup."""

  def tell(text: str) -> None:
    progress.make_room()
    console.print(errors.printable(text), highlight=False, markup=False,
                  soft_wrap=True)

  return tell


class Progress:
  """Shows the progress of iterations; a context manager."""

  def __init__(self, console: rich.console.Console, first: int, last: int,
               time_budget_s: float | None) -> None:
    """Shows iterations from `first` to `last`, or until the time is over."""
    self._console = console
    self._first, self._last = first, last
    self._budget_s = time_budget_s
    self._start = self._said = time.monotonic()
    self._first_step_s: float | None = None
    self._live = live_bar.live_bar(console)
    self._own = contextlib.ExitStack()
    self._task: rich.progress.TaskID  # Set when the live line starts.

  def __enter__(self) -> Progress:
    progress.doing('warming up')
    if self._live:
      progress.idle()
      self._own.enter_context(progress.heard_by(None))
      self._live.start()
      self._task = self._live.add_task('starting', total=self._last,
                                       completed=self._first, eta='?')
    return self

  def __exit__(self, *unused: object) -> None:
    if self._live:
      self._live.stop()
    self._own.close()

  def show_warm_up(self, state: run_state.RunState) -> None:
    """Shows the progress of the warm-up."""
    text = (f'warm-up: best price {format_step_time(state.best_step_time_s)}, '
            f'evaluations {state.total_evaluations}, '
            f'imitation steps {state.warm_steps}')
    if self._live:
      self._live.update(self._task, description=text)
    elif self._plain_line_is_due():
      self._console.print(text, highlight=False, soft_wrap=True)

  def show(self, report: trainer_lib.Report, label: str = '') -> None:
    """Shows one iteration, with the graph's label if there are several."""
    self.show_text(
        report.iteration, report.evaluations,
        f'{label}  ' * bool(label) + f'reward {report.reward:.4f}  '
        f'best price {format_step_time(report.best_step_time_s)}')

  def show_text(self, iteration: int, evaluations: int, text: str) -> None:
    """Shows one iteration.

    Args:
      iteration: Number of the iteration in the run.
      evaluations: Placements priced so far.
      text: Text to show.
    """
    progress.idle()  # This class shows the progress from now on.
    eta = units.clock(self._remaining_s(iteration))
    if self._live:
      self._live.update(self._task, description=text, eta=eta,
                        completed=iteration)
      return
    if self._plain_line_is_due() or iteration == self._last:
      self._console.print(
          f'iteration {iteration}/{self._last}  {text}  '
          f'evaluations {evaluations}  ETA {eta}', highlight=False,
          soft_wrap=True)

  def _plain_line_is_due(self) -> bool:
    now = time.monotonic()
    if now - self._said < _PLAIN_EVERY_S:
      return False
    self._said = now
    return True

  def _remaining_s(self, iteration: int) -> float:
    """Estimates the remaining seconds; NaN at the first iteration.

    The first iteration includes tracing, so its time does not predict the
    others.
    """
    now = time.monotonic()
    if self._first_step_s is None:
      self._first, self._first_step_s = iteration, now
      return math.nan
    remaining = ((now - self._first_step_s) / (iteration - self._first) *
                 (self._last - iteration))
    if self._budget_s is not None:
      remaining = min(remaining, self._budget_s - (now - self._start))
    return max(remaining, 0.0)


def format_step_time(seconds: float) -> str:
  """Returns '12.345 ms', or 'none' for a placement that does not run."""
  return f'{seconds * 1e3:.3f} ms' if np.isfinite(seconds) else 'none'
