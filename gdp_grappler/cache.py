"""What is kept from one run to the next, for this user alone.

A cache saves time and is never worth more than what it saves: whatever cannot
be kept or read costs one line and is made anew. Readers check what they get;
it may be of an older version, or damaged. What others may write is not read:
graphs in it are run.
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

# Nobody writes to one file for so long.
_HALF_WRITTEN_S = 24 * 60 * 60

Tell = Callable[[str], None]
_MEND = (f'Mend that, or let {environment.CACHE_DIR} name another place for '
         'all that is kept.')


def path(*parts: str,
         folder: str | os.PathLike[str] | None = None) -> pathlib.Path:
  """A place in the cache.

  Args:
    *parts: Below the folder.
    folder: Of the cache; by default `environment.cache_folder()`.
  """
  return pathlib.Path(folder or environment.cache_folder(), *parts)


def keep(place: pathlib.Path, data: bytes | str, tell: Tell) -> None:
  """Writes a file, and folders that are missing, that nobody else may read.

  Args:
    place: Of `path`.
    data: Its content.
    tell: Hears one line if that fails, or if others may write in the folder:
      nothing would be read from there. The line is the same for all files of
      a folder.
  """
  try:
    whose = _strangers(place.parent)
    if whose:
      tell(f'Not kept for the next time: {whose}. {_MEND}')
      return
    files.write_atomically(place, data, make_folder=True, private=True)
  except (errors.GdpError, OSError) as error:
    # The cause alone: the error names a file, and so differs every time.
    cause = error.__cause__ or error
    why = getattr(cause, 'strerror', None) or cause
    tell(f'Not kept for the next time: cannot write in {place.parent}: {why}. '
         f'{_MEND}')


def kept(place: pathlib.Path, tell: Tell) -> bytes | None:
  """What was written; None if nothing was.

  Args:
    place: Of `path`.
    tell: Hears one line if it is there and cannot be read, or others could
      have written it.
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
    tell(f'Cannot read {place}: {error.strerror}. Made anew.')
    return None


def make_room(folder: pathlib.Path, most_entries: int, most_bytes: int) -> None:
  """Removes the JSON files that have not been used for longest.

  The last one stays, whatever its size: somebody has just written it. Files
  that processes left half-written when they were killed go after a day.

  Args:
    folder: Of the files; folders below it stay as they are.
    most_entries: So many files may stay.
    most_bytes: So large may they be together.
  """
  try:
    with os.scandir(folder) as found:
      found_files = [(entry.stat(follow_symlinks=False), entry)
                     for entry in found if entry.is_file(follow_symlinks=False)]
  except OSError:
    return  # Another process is making room.
  oldest = time.time() - _HALF_WRITTEN_S
  for status, entry in found_files:
    if _is_half_written(entry.name) and status.st_mtime < oldest:
      _remove(entry.path)
  whole = sorted(
      ((status.st_mtime, status.st_size, entry.path)
       for status, entry in found_files
       if entry.name.endswith('.json') and not _is_half_written(entry.name)),
      reverse=True)
  total = 0
  for count, (_, size, name) in enumerate(whole, 1):
    total += size
    if count > 1 and (count > most_entries or total > most_bytes):
      _remove(name)


def _is_half_written(name: str) -> bool:
  """Whether `files.write_atomically` gives such a name to what it writes."""
  return name.startswith('.')


def _remove(file: str) -> None:
  try:
    os.unlink(file)
  except OSError:
    pass  # Another process has removed it, or it is another user's.


def _strangers(*places: pathlib.Path) -> str:
  """Who else may write what is there; '' for nobody but root."""
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
