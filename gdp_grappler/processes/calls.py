"""Calls a function in a separate process.

Some libraries keep global state, start threads, print, need another environment
or crash. In a separate process they cannot harm the program.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Mapping

from gdp_grappler import errors
from gdp_grappler.processes import launching
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

_LONGEST = 500  # Characters of the text of a function's exception.


class CallError(Exception):
  """A function did not return; the message says why, in one line."""


def call(
    function: str, *arguments: Any, timeout_s: float,
    environment: Mapping[str, str] | None = None, keras: bool = True,
    started: Callable[[worker_process.WorkerProcess], None] | None = None
) -> Any:
  """Calls a function in a separate process, and returns its result.

  Args:
    function: 'package.module:function'. The function may print.
    *arguments: Arguments of the function. They are pickled, as is the result.
    timeout_s: Time limit of the call and the start of the process, in seconds.
    environment: Environment variables that differ from those of
      `launching.environment`.
    keras: Whether the process may import Keras.
    started: Function that gets the process. Another thread may then end the
      call by killing the process.

  Raises:
    GdpError: no process can be started.
    CallError: the function raised an exception, or the process died or took
      too long.
  """
  process = worker_process.WorkerProcess(f'{__name__}:serve', [function],
                                         environment, keras)
  try:
    if started is not None:
      started(process)
    process.send(arguments)
    result, problem = process.receive(timeout_s)
  except worker_process.Died as error:
    raise CallError(str(error)) from error
  finally:
    process.close()
  if problem:
    raise CallError(problem)
  return result


def serve(function: str) -> None:
  """Runs in the child of `call`, and sends (result, problem) once."""
  stream = messages.begin_child()
  arguments = messages.receive(sys.stdin.buffer.read)
  # The function must not read from the pipe of messages.
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  try:
    answer = launching.resolve(function)(*arguments), ''
  except Exception as error:
    # The caller raises an error with this text.
    text = errors.one_line(error, _LONGEST).rstrip('. ')
    answer = None, f'{type(error).__name__}: {text}'
  messages.send(stream, answer)
