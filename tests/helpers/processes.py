"""Processes of a test, by number."""

import pathlib
import time


def children(process: int) -> list[int]:
  """Ids of the child processes of a process, oldest first."""
  result = []
  for task in pathlib.Path(f'/proc/{process}/task').iterdir():
    try:
      result += [int(c) for c in (task / 'children').read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # The thread has ended.
      continue
  return sorted(result)


def runs(process: int) -> bool:
  """Whether it exists and is not just waiting to be reaped."""
  try:
    state = pathlib.Path(f'/proc/{process}/stat').read_text()
  except (FileNotFoundError, ProcessLookupError):
    return False
  return state.rpartition(')')[2].split()[0] != 'Z'


def ended(processes, within_s: float = 20.) -> bool:
  """Waits until none of them runs."""
  end = time.monotonic() + within_s
  while any(runs(p) for p in processes):
    if time.monotonic() > end:
      return False
    time.sleep(.05)
  return True
