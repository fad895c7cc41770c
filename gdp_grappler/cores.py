"""How many cores this process may use."""

from __future__ import annotations

import functools
import math
import os
import pathlib

from gdp_grappler import control_groups

_share = math.inf


def own() -> int:
  """Returns the number of cores that this process may use.

  `taskset`, the CPU quota of a container and `keep_to` limit this number.
  """
  try:
    allowed = len(os.sched_getaffinity(0))
  except AttributeError:  # Not Linux.
    allowed = os.cpu_count() or 1
  quota = math.ceil(min(_quota(), allowed))
  return int(min(allowed, max(quota, 1), _share))


def keep_to(count: int) -> None:
  """Limits `own` to a number of cores, because other processes use the rest."""
  global _share
  _share = count


@functools.cache
def _quota() -> float:
  """Returns the smallest quota of this process, in cores; infinite for none."""
  return min(map(_cores_of, control_groups.folders('cpu')), default=math.inf)


def _cores_of(group: pathlib.Path) -> float:
  """Returns the cores that a group may use; infinite without a quota."""
  try:
    limit = (group / 'cpu.max').read_text().split()
  except OSError:
    try:
      limit = [(group / f'cpu.cfs_{name}_us').read_text()
               for name in ('quota', 'period')]
    except OSError:
      return math.inf
  try:
    quota, period = map(float, limit)
  except ValueError:  # 'max' means no quota in version 2.
    return math.inf
  return quota / period if quota > 0 and period > 0 else math.inf
