"""Exceptions of the program that arrive while the pass waits for a placement.

Python runs the program's signal handlers in the main thread, also while the
main thread runs code of the pass. A handler may raise any exception, such as
KeyboardInterrupt on Ctrl-C, a timeout after `signal.alarm`, or SystemExit on
SIGTERM. But C++ calls the code of the pass, and Python ignores exceptions that
leave code that C++ calls. So this module keeps the exception, and raises the
exception again after the pass has returned to C++.
"""

from __future__ import annotations

import contextlib
import functools
import signal
import threading
import traceback
import types
from typing import Any, Iterator

# Whether the main thread runs code that C++ calls.
_inside = False


class Interruption(BaseException):
  """An exception of the program that ended a wait of the pass.

  Attributes:
    error: The exception.
  """

  def __init__(self, error: BaseException) -> None:
    """Keeps the exception.

    Args:
      error: The exception.
    """
    super().__init__(error)
    self.error = error


class _Raiser:
  """A handler of SIGINT that raises an exception of the program, once.

  The handler then installs the program's own handler again.

  Attributes:
    before: The program's own handler.
  """

  def __init__(self, error: BaseException, before: Any) -> None:
    """Keeps the exception and the program's handler."""
    self._error, self.before = error, before

  def __call__(self, number: int, frame: Any) -> None:
    del number, frame
    signal.signal(signal.SIGINT, self.before)
    raise Interruption(self._error) if _inside else self._error


def is_of_program(error: BaseException | None) -> bool:
  """Whether a signal handler of the program has raised an exception.

  Code that catches all of its own errors must not catch this exception.

  Args:
    error: An exception that was raised, with its traceback. Its causes and
      contexts count, too, except those that a caller of the code that caught
      `error` is handling.
  """
  handlers = map(signal.getsignal, signal.valid_signals())
  codes = {_code(handler) for handler in handlers if callable(handler)}
  outer = _callers(error)
  pending, seen = [error], set()  # Causes may form a circle.
  while pending:
    found = pending.pop()
    frames = _frames(found)
    if found is None or id(found) in seen or frames and frames[0] in outer:
      continue
    if any(frame.f_code in codes for frame in frames):
      return True
    seen.add(id(found))
    pending += [found.__cause__, found.__context__]
  return False


def _frames(error: BaseException | None) -> list[types.FrameType]:
  """Returns the frames of a traceback, from the one that caught the error."""
  trace = error.__traceback__ if error else None
  return [frame for frame, _ in traceback.walk_tb(trace)]


def _callers(error: BaseException | None) -> set[types.FrameType]:
  """Returns the callers of the code that caught an error.

  If a context manager catches an error of its body, the body is no caller,
  although Python calls the manager from the frame of the body.
  """
  frames = _frames(error)
  callers = traceback.walk_stack(frames[0]) if frames else ()
  return {frame for frame, _ in callers} - set(frames)


def _code(handler: Any) -> Any:
  """Returns the code of a handler; None if it is not written in Python."""
  while isinstance(handler, functools.partial):
    handler = handler.func
  called = handler if hasattr(handler, '__code__') else type(handler).__call__
  return getattr(called, '__code__', None)


@contextlib.contextmanager
def beyond_exceptions() -> Iterator[None]:
  """Makes an exception of a signal handler an `Interruption`.

  So code that catches every `Exception` does not catch it.
  """
  try:
    yield
  except Exception as error:
    if is_of_program(error):
      raise Interruption(error) from error
    raise


@contextlib.contextmanager
def in_pass() -> Iterator[None]:
  """Marks the body as code that C++ calls, which no exception may leave."""
  global _inside
  is_main = threading.current_thread() is threading.main_thread()
  _inside |= is_main
  try:
    yield
  finally:
    if is_main:
      _inside = False


def raise_again(error: BaseException) -> bool:
  """Makes the next SIGINT raise an exception of the program.

  The C++ code of the pass sends SIGINT after the Python code has returned. The
  signal may arrive while TensorFlow already calls the pass for another graph.
  Then the handler raises an `Interruption`, and the caller calls this function
  again with its exception.

  Args:
    error: The exception.

  Returns:
    Whether the handler was installed, so that the caller has to send SIGINT.
    The function installs no handler if this thread runs no signal handlers or
    blocks SIGINT, or if Python does not know the program's handler.
  """
  before = signal.getsignal(signal.SIGINT)
  if isinstance(before, _Raiser):  # Its signal never came.
    before = before.before
  if (threading.current_thread() is not threading.main_thread() or
      before is None or
      signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())):
    return False
  signal.signal(signal.SIGINT, _Raiser(error, before))
  return True
