"""One call of a function in a process of its own.

Libraries with global state or threads of their own, that print, that need
another environment, or that may crash, do no harm there.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler.processes import launching
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

_LONGEST = 500  # Characters of what a function raised.


class CallError(Exception):
  """A function did not return; the message says why, in one line."""


def call(function: str, *arguments: Any, timeout_s: float,
         environment: Mapping[str, str] | None = None,
         keras: bool = True) -> Any:
  """What a function returns in a process of its own.

  Args:
    function: 'package.module:function'; an ordinary function, which may print.
    *arguments: What it is called with. They are pickled, as is the result.
    timeout_s: How long it may take, the start of the process included.
    environment: Variables that differ from `launching.environment`.
    keras: Whether it may import Keras.

  Raises:
    CallError: it raised something, or the process died or took too long.
  """
  process = worker_process.WorkerProcess(f'{__name__}:serve', [function],
                                         environment, keras)
  try:
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
  """The child's side of `call`: answers once with (result, problem)."""
  stream = messages.begin_child()
  arguments = messages.receive(sys.stdin.buffer.read)
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # There is nothing more to read.
  try:
    answer = launching.resolve(function)(*arguments), ''
  except Exception as error:
    # Whatever it raises is told by the caller.
    text = errors.one_line(error, _LONGEST).rstrip('. ')
    answer = None, f'{type(error).__name__}: {text}'
  messages.send(stream, answer)
