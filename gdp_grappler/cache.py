"""Files that one run of a program keeps for later runs of the same user.

A cache only saves time. So if a file cannot be kept or read, the user gets one
line, and the content is made anew. A file may be damaged or of an older
version, so callers check its content. Files that other users can write are not
read, because the graphs in them are run.
"""

from __future__ import annotations

import os
import pathlib
import stat
import time
from typing import Callable

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import files

# No process takes this long to write one file.
_HALF_WRITTEN_S = 24 * 60 * 60

Tell = Callable[[str], None]
_MEND = (f'Solve this problem, or set {environment.CACHE_DIR} to another '
         'folder.')


def path(*parts: str,
         folder: str | os.PathLike[str] | None = None) -> pathlib.Path:
  """Returns a path in the cache.

  Args:
    *parts: Names of the folders and of the file below the folder of the cache.
    folder: Folder of the cache; by default `environment.cache_folder()`.
  """
  return pathlib.Path(folder or environment.cache_folder(), *parts)


def keep(place: pathlib.Path, data: bytes | str, tell: Tell) -> None:
  """Writes a file that only this user may read, with all missing folders.

  Nothing is written into a folder that other users can write, because `kept`
  reads nothing from such a folder.

  Args:
    place: Path of the file, from `path`.
    data: Content of the file.
    tell: Function that gets one line if the file is not written. The line is
      the same for all files of a folder.
  """
  try:
    whose = _strangers(place.parent)
    if whose:
      tell(f'Not kept for the next time: {whose}. {_MEND}')
      return
    files.write_atomically(place, data, make_folder=True, private=True)
  except (errors.GdpError, OSError) as error:
    # Only the cause: the text of the error names a file and so differs for each
    # file, but equal lines are shown once.
    cause = error.__cause__ or error
    why = getattr(cause, 'strerror', None) or cause
    tell(f'Not kept for the next time: cannot write in {place.parent}: {why}. '
         f'{_MEND}')


def kept(place: pathlib.Path, tell: Tell) -> bytes | None:
  """Returns the content of a file; None if it is missing or cannot be used.

  Args:
    place: Path of the file, from `path`.
    tell: Function that gets one line if the file exists and cannot be read, or
      if other users can write the file or its folder. If the folder is the
      cause, the line is the same for all of its files.
  """
  try:
    whose = _strangers(place.parent, place)
    if whose:
      tell(f'Not read: {whose}. {_MEND}')
      return None
    return files.read(place, files.MOST_PROTO_BYTES)
  except (FileNotFoundError, NotADirectoryError):
    return None
  except OSError as error:
    cause = place if os.access(place.parent, os.X_OK) else place.parent
    tell(f'Cannot read {cause}: {error.strerror}. Made anew.')
    return None


def make_room(folder: pathlib.Path, most_entries: int, most_bytes: int,
              ending: str = '.json') -> None:
  """Removes the least recently used files of a folder.

  The most recently used file stays, whatever its size, because a process has
  just written it. Half-written files of killed processes are removed once they
  are old.

  Args:
    folder: Folder of the files. Folders below it stay as they are.
    most_entries: Largest number of files that stay.
    most_bytes: Largest total size of the files that stay, in bytes.
    ending: End of the names of files that may be removed.
  """
  try:
    with os.scandir(folder) as found:
      found_files = [(entry.stat(follow_symlinks=False), entry)
                     for entry in found if entry.is_file(follow_symlinks=False)]
  except OSError:
    return  # The folder is missing, or another process has removed files.
  oldest = time.time() - _HALF_WRITTEN_S
  for status, entry in found_files:
    if _is_half_written(entry.name) and status.st_mtime < oldest:
      _remove(entry.path)
  whole = sorted(
      ((status.st_mtime, status.st_size, entry.path)
       for status, entry in found_files
       if entry.name.endswith(ending) and not _is_half_written(entry.name)),
      reverse=True)
  total = 0
  for count, (_, size, name) in enumerate(whole, 1):
    total += size
    if count > 1 and (count > most_entries or total > most_bytes):
      _remove(name)


def _is_half_written(name: str) -> bool:
  """Whether `files.write_atomically` gives this name to unfinished files."""
  return name.startswith('.')


def _remove(file: str) -> None:
  try:
    os.unlink(file)
  except OSError:
    pass  # Another process has removed it, or it is another user's.


def _strangers(*places: pathlib.Path) -> str:
  """Returns text on a path that other users can write; '' if there is none.

  The user root does not count as another user.
  """
  for place in places:
    try:
      status = place.stat()
    except (FileNotFoundError, NotADirectoryError):
      continue
    if status.st_uid not in (os.geteuid(), 0):
      return f'{place} belongs to another user'
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
      return f'{place} can be written by other users'
  return ''
