"""Control groups of Linux, which limit the cores and memory of a process."""

from __future__ import annotations

import pathlib
from typing import Iterator

_ROOT = pathlib.Path('/sys/fs/cgroup')
_OWN = pathlib.Path('/proc/self/cgroup')


def folders(controller: str) -> Iterator[pathlib.Path]:
  """Yields the folders of this process's groups and of those around them.

  A group is also limited by the groups around it.

  Args:
    controller: Controller of the groups of version 1, 'cpu' or 'memory'.
  """
  try:
    lines = _OWN.read_text(errors='replace').splitlines()
  except OSError:
    return
  for line in lines:
    number, controllers, path = line.split(':', 2)
    if number == '0':  # Version 2, which has one hierarchy.
      root = _ROOT
    elif controller in controllers.split(','):
      root = _ROOT / controller
    else:
      continue
    # In a container, /proc may show the path outside of it. That group does not
    # exist here, but some of the groups around it do.
    group = root / path.strip('/')
    yield from (group, *group.parents[:len(group.parts) - len(root.parts)])
