"""Looks at processes of a test by their ids."""

from __future__ import annotations

import os
import pathlib
import subprocess
import time
from typing import Callable, Iterable

from helpers import warm


def children(process: int) -> list[int]:
  """Returns the ids of the child processes of a process, oldest first."""
  result = []
  # /proc/ID/task/*/children is not used: it may miss children of a thread that
  # ends during the reading.
  for stat in pathlib.Path('/proc').glob('[0-9]*/stat'):
    try:
      name, _, rest = stat.read_text().rpartition(')')
    except (FileNotFoundError, ProcessLookupError):  # It has just gone.
      continue
    # Processes of `warm` that only fork do not count as children of a test.
    child = int(stat.parent.name)
    if int(
        rest.split()[1]) == process and not warm.forks(child,
                                                       name.partition('(')[2]):
      result.append(child)
  return sorted(result)


def threads_cores(process: int) -> list[set[int]]:
  """Returns the cores that each running thread of a process may use."""
  result = []
  for thread in pathlib.Path(f'/proc/{process}/task').iterdir():
    try:
      result.append(os.sched_getaffinity(int(thread.name)))
    except ProcessLookupError:  # The thread has just ended.
      continue
  return result


def runs(process: int) -> bool:
  """Whether a process exists and is not a zombie."""
  try:
    state = pathlib.Path(f'/proc/{process}/stat').read_text()
  except (FileNotFoundError, ProcessLookupError):
    return False
  return state.rpartition(')')[2].split()[0] != 'Z'


def wait_until(condition: Callable[[], object],
               process: subprocess.Popen | None = None,
               within_s: float = 100.) -> None:
  """Waits until a condition holds that another process brings about.

  Raises:
    AssertionError: the time is over, or the process ended before.
  """
  end = time.monotonic() + within_s
  while not condition():
    if process is not None and process.poll() is not None:
      said = process.stderr.read() if process.stderr else ''
      raise AssertionError(f'It ended with {process.returncode}: {said}')
    if time.monotonic() > end:
      raise AssertionError(f'Nothing happened within {within_s} s.')
    time.sleep(.05)


def ended(processes: Iterable[int], within_s: float = 20.) -> bool:
  """Waits until none of the processes runs."""
  waiting = list(processes)
  try:
    wait_until(lambda: not any(map(runs, waiting)), within_s=within_s)
  except AssertionError:
    return False
  return True
