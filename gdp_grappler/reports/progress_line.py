"""The progress of a program: a line that is rewritten, or plain lines.

On a terminal the line has the present work, and the time that is left. If the
time left is unknown, the line has the time so far. In a file the first line
comes at once. Later work gets its first line after `_FIRST_S`. Long work gets a
line with its progress every `_EVERY_S`.
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

_TICK_S = .5  # Seconds between two updates of the line.
# Seconds until the first plain line of a piece of work.
_FIRST_S = 1.
# Seconds between later plain lines.
_EVERY_S = 10.
# Shorter times are not shown.
_SHORT_S = 2.
# Least share of the work between the first and the latest report. After less
# work the time left is unknown.
_LEAST_SHARE = .02
_ERASE = '\r\x1b[K'


class ProgressLine:
  """Shows progress. Several threads may call it."""

  def __init__(self, program: str, stream: TextIO,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Makes a line that shows nothing yet.

    Args:
      program: Name of the program; each line begins with it.
      stream: The stream to write to.
      clock: Returns seconds since a fixed moment.
    """
    self._program, self._stream, self._clock = program, stream, clock
    # A program's own stream may have no such method.
    self._terminal = getattr(stream, 'isatty', bool)()
    self._lock = threading.Lock()
    self._what, self._detail, self._share = '', '', 0.
    self._begin_s = self._due_s = 0.
    # Moment and share of the first and of the latest report of this work.
    self._reports: tuple[tuple[float, float], ...] = ()
    self._is_first, self._is_shown = True, False

  def doing(self, what: str) -> None:
    """See `progress.Listener`."""
    with self._lock:
      self._what, self._detail, self._share = what, '', 0.
      self._reports = ()
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
      latest = self._clock(), share
      self._reports = *self._reports[:1], latest

  def make_room(self) -> None:
    """See `progress.Listener`. The next tick shows the line again."""
    with self._lock:
      self._erase()

  def tick(self) -> None:
    """Shows the progress, if a line is due."""
    with self._lock:
      if self._what and (self._terminal or self._clock() >= self._due_s):
        self._show()

  def _show(self) -> None:
    self._is_first = False
    self._due_s = self._clock() + _EVERY_S
    text = f'{self._program}: {self._text()}'
    if self._terminal:
      self._write(_ERASE + text[:self._columns() - 1])
      self._is_shown = True
    else:
      self._write(f'{text}\n')

  def _columns(self) -> int:
    """Returns the width of the terminal, which may not be standard output."""
    columns = 0
    # A program's own stream may have no descriptor.
    with contextlib.suppress(AttributeError, OSError, ValueError):
      columns = os.get_terminal_size(self._stream.fileno()).columns
    return columns or shutil.get_terminal_size().columns

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
    left_s = self._left_s()
    if left_s > 0:
      parts.append(f'ETA {units.clock(left_s)}')
    elif seconds > _SHORT_S:
      parts.append(units.clock(seconds))
    return ', '.join(parts)

  def _left_s(self) -> float:
    """Returns the seconds that the work still takes; 0 if that is unknown.

    The first report may include earlier work. So the rate is that between the
    first and the latest report. The time since the latest report is subtracted:
    otherwise the estimate would grow while no report comes.
    """
    if len(self._reports) < 2:
      return 0.
    (first_s, first), (latest_s, latest) = self._reports
    if latest - first <= _LEAST_SHARE:
      return 0.
    end_s = latest_s + (1 - latest) * (latest_s - first_s) / (latest - first)
    return end_s - self._clock()

  def _write(self, text: str) -> None:
    """Writes a text. A stream that is closed or full raises no error."""
    with contextlib.suppress(OSError, ValueError):
      self._stream.write(text)
      self._stream.flush()


@contextlib.contextmanager
def shown(program: str, quiet: bool = False) -> Iterator[None]:
  """In the context, progress is shown on standard error.

  Args:
    program: Name of the program; each line begins with it.
    quiet: Whether to show nothing.
  """
  if quiet or not progress.has_stderr():
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
  """Opens a copy of standard error, which `quiet` sometimes holds back.

  A program's own stream is used itself. Its descriptor may lead elsewhere: in a
  notebook, to the terminal of the server.
  """
  copy, is_pythons = None, sys.stderr is sys.__stderr__
  if is_pythons:
    with contextlib.suppress(AttributeError, OSError, ValueError):
      copy = os.dup(sys.stderr.fileno())
  if copy is None:
    yield sys.stderr
    return
  stream = open(copy, 'w', encoding=getattr(sys.stderr, 'encoding', None),
                errors='backslashreplace')
  try:
    yield stream
  finally:
    with contextlib.suppress(OSError):
      stream.close()
