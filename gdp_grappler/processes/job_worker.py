"""The process of a worker: makes something of a setup, answers jobs with it.

The function that makes it runs in this process as well. It may hold on to
whatever takes long to make, start threads, or fork; unless it forks, it calls
`alone` first.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from gdp_grappler import errors
from gdp_grappler.processes import launching
from gdp_grappler.processes import messages

_LONGEST = 500  # Characters of what a job raised.


def main(function: str) -> None:
  """Answers jobs with (result, problem) until the parent is gone.

  Args:
    function: 'package.module:function'. Called with the setup, which is the
      first message and has no answer, it returns what is called with each job.
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
  """For a process that does not fork: ends it with its parent, or for memory.

  A thread watches the parent, and a process with threads should not fork.
  """
  messages.end_with_parent()
  messages.volunteer_for_oom()


def _tried(work: Callable[[], Any]) -> tuple[Any, str]:
  """What it returns and '', or None and why not."""
  try:
    return work(), ''
  except Exception as error:
    # Whatever it raises is told by whoever wanted the job done.
    return None, errors.described(error, _LONGEST)


def _read(size: int) -> bytes:
  """Unbuffered, so that `select` tells a worker whether there is more."""
  data = b''
  while len(data) < size:
    part = os.read(sys.stdin.fileno(), size - len(data))
    if not part:
      break
    data += part
  return data
