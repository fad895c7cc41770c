"""How many cores this process may use."""

from __future__ import annotations

import functools
import math
import os
import pathlib
from typing import Iterator

_CGROUPS = pathlib.Path('/sys/fs/cgroup')
_OWN_CGROUPS = pathlib.Path('/proc/self/cgroup')
_share = math.inf


def own() -> int:
  """Returns the number of cores that this process may use.

  Limits by `taskset`, by the CPU quota of a container and by `keep_to` count.
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
  """Returns the cores of the smallest quota of this process, maybe infinite.

  Control groups of Linux have quotas. A group is also limited by the groups
  around it.
  """
  return min(map(_cores_of, _cgroups()), default=math.inf)


def _cgroups() -> Iterator[pathlib.Path]:
  """Yields the folders of this process's groups and of those around them."""
  try:
    lines = _OWN_CGROUPS.read_text(errors='replace').splitlines()
  except OSError:
    return
  for line in lines:
    number, controllers, path = line.split(':', 2)
    if number == '0':  # Version 2, which has one hierarchy.
      root = _CGROUPS
    elif 'cpu' in controllers.split(','):
      root = _CGROUPS / 'cpu'
    else:
      continue
    # In a container the path may be that outside of the container.
    group = root / path.strip('/')
    yield from (group, *group.parents[:len(group.parts) - len(root.parts)])


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
