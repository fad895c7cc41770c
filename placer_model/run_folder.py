"""A folder in which one run at a time is at work."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
from typing import Iterable, Iterator

from gdp_grappler import errors

_LOCK = '.lock'


def remove(paths: Iterable[pathlib.Path]) -> None:
  """Removes files, and folders with all that is in them; some may be gone."""
  for path in paths:
    if path.is_dir():
      shutil.rmtree(path, ignore_errors=True)
    else:
      path.unlink(missing_ok=True)


@contextlib.contextmanager
def held(folder: pathlib.Path, flag: str) -> Iterator[None]:
  """Keeps other runs out of a folder; ends with its process.

  Args:
    folder: Made if it does not exist.
    flag: What gave it, for messages.

  Raises:
    GdpError: another run is in there, or it cannot be written.
  """
  try:
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever gave the folder may have put a pipe or a link in the lock's place.
    handle = os.open(
        folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        | os.O_NONBLOCK, 0o666)
  except OSError as error:
    raise errors.GdpError(f'Cannot write to {folder}: {error.strerror}. '
                          f'Give another {flag}.') from error
  with os.fdopen(handle, 'wb'):
    try:
      fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
      raise errors.GdpError(
          f'Another run is at work in {folder}. Wait for its end, or give '
          f'another {flag}.') from error
    yield
