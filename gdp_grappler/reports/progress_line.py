"""Shows the progress of a program: one rewritten line, or plain lines.

On a terminal, the line has the current task, its elapsed or its remaining time.
Elsewhere the first task gets a line at once. A later task gets a line if it
takes longer than a moment. A long task gets further lines at regular intervals.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import threading
import time
from typing import Callable, Iterator, TextIO

from gdp_grappler import progress
from gdp_grappler.reports import units

_TICK_S = .5
# Seconds until the first plain line of a task, and between later lines.
_FIRST_S, _EVERY_S = 1., 10.
# The elapsed time is shown after this time only.
_SHORT_S = 2.
# Share of the task from which the remaining time can be predicted.
_LEAST_SHARE = .02
_ERASE = '\r\x1b[K'


class ProgressLine:
  """A listener that shows progress; several threads may call it."""

  def __init__(self, program: str, stream: TextIO,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Makes a line that shows nothing yet.

    Args:
      program: Name of the program, at the beginning of each line.
      stream: Stream to write to.
      clock: Function that returns seconds since a fixed moment.
    """
    self._program, self._stream, self._clock = program, stream, clock
    self._terminal = stream.isatty()
    self._lock = threading.Lock()
    self._what, self._detail, self._share = '', '', 0.
    self._begin_s = self._due_s = 0.
    self._is_first, self._is_shown = True, False

  def doing(self, what: str) -> None:
    """See `progress.Listener`."""
    with self._lock:
      self._what, self._detail, self._share = what, '', 0.
      self._begin_s = self._clock()
      self._due_s = self._begin_s + _FIRST_S
      if not what:
        self._erase()
      elif self._terminal or self._is_first:
        self._show()

  def reached(self, share: float, detail: str) -> None:
    """See `progress.Listener`."""
    with self._lock:
      self._share, self._detail = share, detail

  def make_room(self) -> None:
    """See `progress.Listener`. The next tick shows the line again."""
    with self._lock:
      self._erase()

  def tick(self) -> None:
    """Shows the progress: always on a terminal, else if a line is due."""
    with self._lock:
      if self._what and (self._terminal or self._clock() >= self._due_s):
        self._show()

  def _show(self) -> None:
    self._is_first = False
    self._due_s = self._clock() + _EVERY_S
    text = f'{self._program}: {self._text()}'
    if self._terminal:
      columns = shutil.get_terminal_size().columns
      self._write(_ERASE + text[:columns - 1])
      self._is_shown = True
    else:
      self._write(f'{text}\n')

  def _erase(self) -> None:
    if self._is_shown:
      self._write(_ERASE)
      self._is_shown = False

  def _text(self) -> str:
    """Returns a text such as 'searching, 40%, best 3 ms, ETA 0:12'."""
    seconds = self._clock() - self._begin_s
    parts = [self._what]
    if self._share:
      parts.append(f'{min(self._share, 1):.0%}')
    if self._detail:
      parts.append(self._detail)
    if self._share > _LEAST_SHARE:
      left_s = seconds * max(1 / self._share - 1, 0)
      parts.append(f'ETA {units.clock(left_s)}')
    elif seconds > _SHORT_S:
      parts.append(units.clock(seconds))
    return ', '.join(parts)

  def _write(self, text: str) -> None:
    """Writes text; a closed stream is no error of the program."""
    with contextlib.suppress(OSError, ValueError):
      self._stream.write(text)
      self._stream.flush()


@contextlib.contextmanager
def shown(program: str, quiet: bool = False) -> Iterator[None]:
  """Shows progress on standard error while the context lasts.

  Args:
    program: Name of the program, at the beginning of each line.
    quiet: Whether to show nothing.
  """
  if quiet or sys.stderr is None or sys.stderr.closed:
    with progress.heard_by(None):
      yield
    return
  with _own_stderr() as stream:
    line, ended = ProgressLine(program, stream), threading.Event()
    ticking = threading.Thread(target=_tick, args=(line, ended), daemon=True)
    ticking.start()
    try:
      with progress.heard_by(line):
        yield
    finally:
      ended.set()
      ticking.join()
      line.doing('')


def _tick(line: ProgressLine, ended: threading.Event) -> None:
  while not ended.wait(_TICK_S):
    line.tick()


@contextlib.contextmanager
def _own_stderr() -> Iterator[TextIO]:
  """Yields a copy of standard error, which `quiet` does not redirect."""
  try:
    copy = os.dup(sys.stderr.fileno())
  except (OSError, ValueError):
    yield sys.stderr
    return
  stream = open(copy, 'w', encoding=sys.stderr.encoding,
                errors='backslashreplace')
  try:
    yield stream
  finally:
    with contextlib.suppress(OSError):
      stream.close()
