"""How many cores this process may use."""

from __future__ import annotations

import math
import os

_share = math.inf


def own() -> int:
  """Returns the number of cores that this process may use.

  Limits by `taskset` and by `keep_to` count. Other limits, such as the CPU
  quota of a container, do not count.
  """
  try:
    allowed = len(os.sched_getaffinity(0))
  except AttributeError:  # Not Linux.
    allowed = os.cpu_count() or 1
  return int(min(allowed, _share))


def keep_to(count: int) -> None:
  """Limits `own` to a number of cores, because other processes use the rest."""
  global _share
  _share = count
