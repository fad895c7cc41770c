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
from typing import Callable

from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import files

Tell = Callable[[str], None]


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
    tell: Hears one line if that fails.
  """
  try:
    files.write_atomically(place, data, make_folder=True, private=True)
  except errors.GdpError as error:
    tell(f'Not kept for the next time. {error} {environment.CACHE_DIR} names '
         'another place for all that is kept.')


def kept(place: pathlib.Path, tell: Tell) -> bytes | None:
  """What was written; None if nothing was.

  Args:
    place: Of `path`.
    tell: Hears one line if it is there and cannot be read, or others could
      have written it.
  """
  try:
    for each in (place.parent, place):
      whose = _strangers(each.stat())
      if whose:
        tell(f'{place} is not used: {each} {whose}. Remove it, or let '
             f'{environment.CACHE_DIR} name another place.')
        return None
    return files.read(place, files.MOST_PROTO_BYTES)
  except (FileNotFoundError, NotADirectoryError):
    return None
  except OSError as error:
    tell(f'Cannot read {place}: {error.strerror}. Made anew.')
    return None


def _strangers(status: os.stat_result) -> str:
  """Who else may write a file or a folder; '' for nobody but root."""
  if status.st_uid not in (os.geteuid(), 0):
    return 'belongs to another user'
  if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
    return 'can be written by other users'
  return ''
