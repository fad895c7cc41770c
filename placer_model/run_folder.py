"""The folder of a run: one process at a time may use it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import shutil
from typing import Iterable, Iterator

from gdp_grappler import errors
from gdp_grappler import files

# For messages on how to go on with a run. --restart would remove it.
SAME_COMMAND = 'the same command (without --restart)'
_LOCK = '.lock'


def remove(paths: Iterable[pathlib.Path]) -> None:
  """Removes files, and folders with their content; paths may be missing."""
  for path in paths:
    if path.is_dir():
      shutil.rmtree(path, ignore_errors=True)
    else:
      path.unlink(missing_ok=True)


def remove_own(folder: pathlib.Path, names: Iterable[str], own: bool) -> None:
  """Removes the files and folders of a run, for --restart.

  Args:
    folder: Folder of the run.
    names: Names of what a run writes into its folder.
    own: Whether the folder is known to be that of a run. A project of the user
      may have a file of the same name.

  Raises:
    GdpError: the folder has something of these names, but is not known to be
      that of a run. Nothing was removed.
  """
  found = [name for name in names if (folder / name).exists()]
  if found and not own:
    raise errors.GdpError(
        f'--restart would remove {", ".join(found)} in {folder}, but these may '
        'be files of another program. Give another --model_dir, or remove them '
        'yourself.')
  remove(folder / name for name in found)


def check_no_policy(folder: pathlib.Path) -> None:
  """Checks that a run that begins in a folder overwrites no policy.

  Args:
    folder: Folder without files of the run.

  Raises:
    GdpError: the folder has a policy.
  """
  policy = folder / 'policy'
  if policy.exists():
    raise errors.GdpError(
        f'{policy} is from another run. Give another --model_dir, or remove it '
        'yourself.')


def own_json(path: pathlib.Path, fields: Iterable[str]) -> bool:
  """Returns whether a file is a JSON object with these fields."""
  try:
    found = files.parse_json(files.read(path))
  except (OSError, ValueError):
    return False
  return isinstance(found, dict) and set(fields) <= set(found)


@contextlib.contextmanager
def held(folder: pathlib.Path, flag: str) -> Iterator[None]:
  """Locks a folder against other runs until the context or process ends.

  Args:
    folder: Folder of the run. It is made if it does not exist.
    flag: Flag that named the folder, for messages.

  Raises:
    GdpError: another run uses the folder, or it cannot be written.
  """
  try:
    folder.mkdir(parents=True, exist_ok=True)
    # A folder from elsewhere may have a pipe or a link in the lock's place.
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
