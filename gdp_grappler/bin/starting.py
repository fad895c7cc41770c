"""The entry points of the console programs, which handle Ctrl-C and SIGTERM.

Imports take a third of a second. Ctrl-C during the imports would print a
traceback, although nothing has begun. Batch systems end programs by SIGTERM,
which would leave temporary files behind.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import io
import os
import signal
import sys
import threading
import types
from typing import Iterator, TextIO

INTERRUPTED = 130  # Exit code of a shell's command that Ctrl-C ended.


def gdp() -> int | None:
  """Runs the program `gdp`."""
  return call('gdp', 'gdp_grappler.bin.gdp', 'main')


def call(program: str, module: str, function: str) -> int | None:
  """Imports a module and calls one of its functions.

  Ctrl-C or SIGTERM during the import ends the process with a line and exit code
  130. After the import both raise `KeyboardInterrupt` (`end_as_interrupted`).
  Once the function has ended and no thread is left, both do nothing. A signal
  that is ignored when the program starts stays ignored.

  Args:
    program: Name of the program, for the line.
    module: Name of the module to import.
    function: Name of a function of the module, without parameters.

  Returns:
    The exit code that the function returns.
  """

  def stop(unused_signal: int, unused_frame: types.FrameType | None) -> None:
    os.write(2, f'{program}: interrupted\n'.encode())
    os._exit(INTERRUPTED)

  before = {
      number: signal.getsignal(number)
      for number in (signal.SIGINT, signal.SIGTERM)
  }
  for number, handler in before.items():
    if handler in (signal.default_int_handler, signal.SIG_DFL):
      signal.signal(number, stop)
  called = getattr(importlib.import_module(module), function)
  for number, handler in before.items():
    signal.signal(number, handler)
  end_as_interrupted()
  try:
    code: int | None = called()
  finally:
    # Called before the other functions of `atexit`, which free what is left.
    atexit.register(_ignore_interrupts)
  return code


def prepare_streams() -> None:
  """Makes standard output and standard error take every text.

  A stream that the caller has closed is opened, and drops all text. A name in
  the output may have characters that the encoding of a stream lacks. They are
  written as Python's escapes, unless the stream has an error handler already.
  """
  for name in ('stdout', 'stderr'):
    stream = getattr(sys, name)
    if stream is None:
      setattr(sys, name, open(os.devnull, 'w', encoding='utf-8'))
    elif isinstance(stream, io.TextIOWrapper) and stream.errors == 'strict':
      stream.reconfigure(errors='backslashreplace')


def flush(stream: TextIO, failure: type[OSError] = OSError) -> None:
  """Writes the text in a stream's buffer; after a failure drops it (`drop`).

  Args:
    stream: Standard output or standard error.
    failure: The failure. Only `BrokenPipeError` means that nobody reads the
      stream. Other errors may be a full disk.
  """
  try:
    stream.flush()
  except failure:
    drop(stream)


def drop(stream: TextIO) -> None:
  """Drops all text for a stream, because nobody reads it.

  Python would try again at the end, fail, and change the exit code.
  """
  os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def end_as_interrupted() -> None:
  """Makes SIGTERM act like Ctrl-C from now on, unless it is ignored."""
  if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
    signal.signal(signal.SIGTERM, _interrupt)


@contextlib.contextmanager
def interrupts_kept() -> Iterator[None]:
  """Raises `KeyboardInterrupt` after the context if the context swallowed it.

  Python drops exceptions in some callbacks, such as those with which an import
  removes its lock. So an import that takes seconds may lose Ctrl-C, or fail
  with another error.
  """
  handler = signal.getsignal(signal.SIGINT)
  in_main = threading.current_thread() is threading.main_thread()
  if not in_main or not callable(handler):
    yield
    return
  seen = []

  def note(number: int, frame: types.FrameType | None) -> None:
    seen.append(number)
    handler(number, frame)

  signal.signal(signal.SIGINT, note)
  try:
    yield
  finally:
    signal.signal(signal.SIGINT, handler)
    if seen:
      raise KeyboardInterrupt


def _ignore_interrupts() -> None:
  """Lets the process end with the exit code of its result.

  Python resets handlers while it ends, but not ignored signals. So a signal
  would kill the process, which takes seconds to unload TensorFlow.
  """
  for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.SIG_IGN)


def _interrupt(unused_signal: int, frame: types.FrameType | None) -> None:
  handler = signal.getsignal(signal.SIGINT)
  # A program in the background ignores Ctrl-C, but has to end on SIGTERM.
  called = handler if callable(handler) else signal.default_int_handler
  called(signal.SIGINT, frame)
