"""How many cores this process may use."""

from __future__ import annotations

import math
import os

_share = math.inf


def own() -> int:
  """Those of the machine, less those it was kept from by `taskset` or a job.

  Of a process that shares them with its like, its part.
  """
  try:
    allowed = len(os.sched_getaffinity(0))
  except AttributeError:  # Not Linux.
    allowed = os.cpu_count() or 1
  return int(min(allowed, _share))


def keep_to(count: int) -> None:
  """From now on this process has no more than so many; others have the rest."""
  global _share
  _share = count
