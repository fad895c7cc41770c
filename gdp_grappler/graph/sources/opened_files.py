"""The user's files that a traced function has read, modules included.

Python calls audit hooks (PEP 578) for every file that it opens. It does not
call them for files that TensorFlow's C++ code reads, such as weights.
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

# Folders of the system, which have no files of the user.
_OF_SYSTEM = ('/proc', '/sys', '/dev', '/etc')
_FOLDERS = sysconfig.get_paths()  # Of Python and of packages.
# Packages whose many files change only by an installation (see `trace_cache`).
_LIBRARIES = ('keras', 'tensorflow', 'tf_keras')
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT

# A file: its path, size in bytes, and time of its last change in ns.
Stamp = tuple[str, int, int]
_MISSING = -1  # Size and time of a file that was missing.


class Watch:
  """Records opened files from its creation to the end of the process."""

  def __init__(self) -> None:
    """Adds an audit hook, which cannot be removed before the process ends."""
    # Stamps of files at the moment when they were opened for the first time.
    self._first: dict[pathlib.Path, Stamp | None] = {}
    # Files that were opened for writing.
    self._written: set[pathlib.Path] = set()
    self._begin_ns = time.time_ns()
    sys.addaudithook(self._record)

  def _record(self, event: str, arguments: tuple[Any, ...]) -> None:
    if event != 'open' or not isinstance(arguments[0],
                                         (str, bytes, os.PathLike)):
      return
    path = pathlib.Path(os.path.abspath(os.fsdecode(arguments[0])))
    if path not in self._first:
      self._first[path] = stamp(_source(path))
    if arguments[2] & _WRITING:
      self._written.add(path)

  def stamps(self) -> list[Stamp]:
    """Returns stamps of files that exist or were missing when they were opened.

    The stamp is that of the first opening, so a file that changed afterwards
    counts as changed. A file that the function itself made or wrote has its
    present stamp. Files of Python and TensorFlow are left out. So are temporary
    files that were written since the watch began, because TensorFlow writes
    such files.
    """
    found = {}
    for path, seen in list(self._first.items()):
      if _is_strange(path):
        continue
      if seen is None or path in self._written:
        seen = stamp(_source(path))
      if seen is None:
        if path not in self._written and not _exists(path):
          found[str(path)] = (str(path), _MISSING, _MISSING)
        continue
      if seen[2] < self._begin_ns or not path.is_relative_to(
          tempfile.gettempdir()):
        found[seen[0]] = seen
    return list(found.values())


def has_changed(before: Stamp) -> bool:
  """Whether a file has changed, or was missing and now exists."""
  path = pathlib.Path(before[0])
  if before[1] == _MISSING:
    return _exists(path)
  return stamp(path) != before


def _exists(path: pathlib.Path) -> bool:
  try:
    return os.path.lexists(path)
  except ValueError:
    return False  # The name is not valid for a file.


def stamp(path: pathlib.Path) -> Stamp | None:
  """Returns the stamp of a file; None if it is not a regular file."""
  try:
    status = path.stat()
  except (OSError, ValueError):
    return None  # It is missing, or its name is not valid for a file.
  if not stat.S_ISREG(status.st_mode):
    return None
  return str(path), status.st_size, status.st_mtime_ns


def _source(path: pathlib.Path) -> pathlib.Path:
  """Returns the source of a compiled module, or the path itself."""
  if path.suffix == '.pyc' and path.parent.name == '__pycache__':
    return path.parent.parent / f'{path.name.split(".")[0]}.py'
  return path


def _is_strange(path: pathlib.Path) -> bool:
  """Whether a file belongs to the system, Python or TensorFlow."""
  for packages in (_FOLDERS['purelib'], _FOLDERS['platlib']):
    if path.is_relative_to(packages):
      return path.relative_to(packages).parts[:1] in [(n,) for n in _LIBRARIES]
  return any(map(path.is_relative_to, (*_OF_SYSTEM, _FOLDERS['stdlib'])))
