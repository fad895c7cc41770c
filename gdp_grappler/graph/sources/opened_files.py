"""Which files of its own a traced function has read, modules included.

Python tells its auditors (PEP 578) of every file that it opens; what TensorFlow
reads by itself, such as weights, it does not tell of.
"""

from __future__ import annotations

import os
import pathlib
import stat
import sys
import sysconfig
import tempfile
import time
from typing import Any

# Nobody's files.
_OF_SYSTEM = ('/proc', '/sys', '/dev', '/etc')

# A file: its path, size in bytes, and when it was changed in ns. Of one that
# was missing, both are `_MISSING`.
Stamp = tuple[str, int, int]
_MISSING = -1


class Watch:
  """Hears of files from when it is made to the end of the process."""

  def __init__(self) -> None:
    """An auditor cannot be taken back, so this is for processes that end."""
    self._opened: dict[str, None] = {}
    self._made: set[str] = set()
    self._begin_ns = time.time_ns()
    sys.addaudithook(self._hear)

  def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
    if event == 'open' and isinstance(arguments[0], (str, bytes, os.PathLike)):
      name = os.fsdecode(arguments[0])
      self._opened[name] = None
      if arguments[2] & os.O_CREAT:
        self._made.add(name)

  def stamps(self) -> list[Stamp]:
    """Of those that are there or were missing, outside of what is installed.

    Nor of temporary files that were written meanwhile, as TensorFlow does.
    """
    strange, found = (*_OF_SYSTEM, *_installed()), {}
    for name in list(self._opened):
      path = pathlib.Path(name).absolute()
      if any(map(path.is_relative_to, strange)):
        continue
      seen = stamp(_source(path))
      if seen is None:
        if name not in self._made and not _is_there(path):
          found[str(path)] = (str(path), _MISSING, _MISSING)
        continue
      if seen[2] < self._begin_ns or not path.is_relative_to(
          tempfile.gettempdir()):
        found[seen[0]] = seen
    return list(found.values())


def has_changed(before: Stamp) -> bool:
  """Whether a file is another one by now, or is there and was missing."""
  path = pathlib.Path(before[0])
  if before[1] == _MISSING:
    return _is_there(path)
  return stamp(path) != before


def _is_there(path: pathlib.Path) -> bool:
  try:
    return os.path.lexists(path)
  except ValueError:
    return False  # A name that no file can have.


def stamp(path: pathlib.Path) -> Stamp | None:
  """What shows that a file was changed; None if it is no regular file."""
  try:
    status = path.stat()
  except OSError:
    return None
  if not stat.S_ISREG(status.st_mode):
    return None
  return str(path), status.st_size, status.st_mtime_ns


def _source(path: pathlib.Path) -> pathlib.Path:
  """The module behind its compiled form."""
  if path.suffix == '.pyc' and path.parent.name == '__pycache__':
    return path.parent.parent / f'{path.name.split(".")[0]}.py'
  return path


def _installed() -> set[str]:
  """Folders of Python and of packages: `trace_cache` looks at them."""
  paths = sysconfig.get_paths()
  return {paths[name] for name in ('stdlib', 'purelib', 'platlib')}
