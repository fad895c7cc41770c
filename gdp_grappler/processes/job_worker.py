"""The process of a worker, which gets a setup once and then answers jobs.

A setup function gets the setup, and returns the function that is called with
each job. Both functions run in this process. The setup function may keep data
that take long to make, start threads, or fork. If it does not fork, it has to
call `alone` first.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from gdp_grappler import errors
from gdp_grappler.processes import launching
from gdp_grappler.processes import messages

_LONGEST = 500  # Characters of the text of a job's exception.


def main(function: str) -> None:
  """Answers jobs with (result, problem) until the parent has ended.

  The first message is the setup. It gets no answer.

  Args:
    function: The setup function, 'package.module:function'.
  """
  output = messages.answers()
  try:
    setup = messages.receive(_read)
    answer, problem = _tried(lambda: launching.resolve(function)(setup))
    while True:
      job = messages.receive(_read)
      messages.send(
          output,
          (None,
           problem) if problem else _tried(functools.partial(answer, job)))
  except EOFError:
    return


def alone() -> None:
  """Makes this process end with its parent, or before it if memory runs out.

  This is for processes that do not fork: a thread watches the parent, and a
  process with threads should not fork.
  """
  messages.end_with_parent()
  messages.volunteer_for_oom()


def _tried(work: Callable[[], Any]) -> tuple[Any, str]:
  """Returns the result of the work and '', or None and the reason."""
  try:
    return work(), ''
  except Exception as error:
    # The caller reports any error.
    return None, errors.described(error, _LONGEST)


def _read(size: int) -> bytes:
  """Reads without a buffer, so that `select` shows whether there is more."""
  data = bytearray()
  while len(data) < size:
    part = os.read(sys.stdin.fileno(), size - len(data))
    if not part:
      break
    data += part
  return bytes(data)
