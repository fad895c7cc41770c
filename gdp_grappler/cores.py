"""How many cores this process may use."""

from __future__ import annotations

import os


def own() -> int:
  """Those of the machine, less those it was kept from by `taskset` or a job."""
  try:
    return len(os.sched_getaffinity(0))
  except AttributeError:  # Not Linux.
    return os.cpu_count() or 1
