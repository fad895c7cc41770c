"""Exceptions of the program that arrive while the pass waits for a placement.

Python runs the program's signal handlers in the main thread, also while this
thread runs code of the pass. A handler may raise any exception: Ctrl-C, a
timeout after `signal.alarm`, SystemExit on SIGTERM. But C++ calls the pass, and
Python ignores exceptions in code that C++ calls. So the exception is kept, and
raised again after the pass has returned.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any, Iterator

# Number of calls of the pass that the main thread is in.
_depth = 0


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


@contextlib.contextmanager
def in_pass() -> Iterator[None]:
  """Marks the body as code that C++ calls, where no exception may end."""
  global _depth
  is_main = threading.current_thread() is threading.main_thread()
  _depth += is_main
  try:
    yield
  finally:
    _depth -= is_main


def raise_again(error: BaseException) -> bool:
  """Makes the next SIGINT raise an exception of the program.

  The C++ code of the pass sends this signal after the Python code has returned.
  TensorFlow may then call the pass for another graph before the program goes
  on. If so, the signal raises an `Interruption`, which leads here again. The
  signal also brings back the program's handler of SIGINT.

  Args:
    error: The exception.

  Returns:
    Whether the signal has to be sent. It must not be sent on a thread that runs
    no signal handlers, nor if the program's handler is unknown to Python.
  """
  before = signal.getsignal(signal.SIGINT)
  if (threading.current_thread() is not threading.main_thread() or
      before is None):
    return False

  def handler(number: int, frame: Any) -> None:
    del number, frame
    signal.signal(signal.SIGINT, before)
    raise Interruption(error) if _depth else error

  signal.signal(signal.SIGINT, handler)
  return True
