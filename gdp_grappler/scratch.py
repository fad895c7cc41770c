"""Folders that exist only while a program runs.

A process that is killed leaves its folders behind. So each process locks its
folders as long as it lives. Before a process makes a folder, it removes the
folders of the same kind that no process locks.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time

_LOCK = '.held'
# Seconds for which a folder without a held lock is new, not left over.
_NEW_S = 60.


class Folder:
  """An empty folder for this user alone; a context manager that removes it.

  Attributes:
    name: Its path.
  """

  def __init__(self, prefix: str, parent: str | None = None) -> None:
    """Makes the folder.

    Args:
      prefix: First letters of the folder's name, the same for all folders of
        a kind.
      parent: Folder in which to make it; by default that of temporary files.

    Raises:
      OSError: the folder cannot be made.
    """
    parent = parent or tempfile.gettempdir()
    _sweep(parent, prefix)
    self._folder = tempfile.TemporaryDirectory(prefix=prefix, dir=parent,
                                               ignore_cleanup_errors=True)
    self.name = self._folder.name
    self._held: int | None = os.open(os.path.join(self.name, _LOCK),
                                     os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
                                     0o600)
    fcntl.flock(self._held, fcntl.LOCK_EX)

  def __enter__(self) -> Folder:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.cleanup()

  def cleanup(self) -> None:
    """Removes the folder with its content.

    A second call removes files that were written since the first.
    """
    self._folder.cleanup()
    if self._held is not None:
      os.close(self._held)
      self._held = None


def _sweep(parent: str, prefix: str) -> None:
  """Removes this user's folders whose processes are gone."""
  try:
    with os.scandir(parent) as entries:
      left = [
          entry.path for entry in entries
          if entry.name.startswith(prefix) and entry.is_dir(
              follow_symlinks=False) and entry.stat(
                  follow_symlinks=False).st_uid == os.geteuid()
      ]
  except OSError:
    return  # Making the folder will fail and report the reason.
  for path in left:
    if _is_free(path):
      shutil.rmtree(path, ignore_errors=True)


def _is_free(path: str) -> bool:
  """Whether no process holds the lock of a folder.

  A folder without a lock file is one that another process is just making or
  removing, so it is not free.
  """
  try:
    handle = os.open(os.path.join(path, _LOCK),
                     os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
  except OSError:
    return False
  try:
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    # The process of a new folder may be about to lock it.
    return os.fstat(handle).st_mtime < time.time() - _NEW_S
  except OSError:
    return False
  finally:
    os.close(handle)
