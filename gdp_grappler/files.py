"""How files are written: whole or not at all."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import tempfile
from typing import Any
import zlib

from gdp_grappler import errors


def write_atomically(path: str | os.PathLike[str], data: bytes | str,
                     make_folder: bool = False, private: bool = False) -> None:
  """Replaces a file in one step; a reader never sees half of it.

  Args:
    path: The file.
    data: The whole new content; text is written as UTF-8.
    make_folder: Whether to make the file's folder if it does not exist.
    private: Whether nobody else may read the file, and folders that are made.

  Raises:
    GdpError: the file cannot be written; what was there before still is.
  """
  path = pathlib.Path(path)
  data = data.encode() if isinstance(data, str) else data
  temporary = None
  try:
    if make_folder:
      _make(path.parent, 0o700 if private else 0o777)
    handle, temporary = tempfile.mkstemp(dir=path.parent,
                                         prefix=f'.{path.name}')
    with os.fdopen(handle, 'wb') as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.chmod(temporary, 0o600 if private else 0o666 & ~_umask())
    os.replace(temporary, path)
  except OSError as error:
    raise errors.GdpError(
        f'Cannot write {path}: {error.strerror}. Make room or name '
        'another place; what was there is unchanged.') from error
  finally:
    if temporary and os.path.exists(temporary):
      os.unlink(temporary)


def _make(folder: pathlib.Path, mode: int) -> None:
  """With all that are missing above it."""
  missing = []
  while not folder.is_dir():
    missing.append(folder)
    folder = folder.parent
  for each in reversed(missing):
    each.mkdir(mode, exist_ok=True)


def write_compressed_json(path: str | os.PathLike[str], value: Any) -> None:
  """Replaces a file in one step; equal values give equal files.

  Raises:
    GdpError: the file cannot be written; what was there before still is.
  """
  text = json.dumps(value, allow_nan=False) + '\n'
  write_atomically(path, gzip.compress(text.encode(), mtime=0))


def read_compressed_json(path: str | os.PathLike[str]) -> Any:
  """What `write_compressed_json` wrote.

  Raises:
    GdpError: there is no such file, or it is damaged.
  """
  try:
    return json.loads(gzip.decompress(pathlib.Path(path).read_bytes()))
  except (OSError, EOFError, ValueError, zlib.error) as error:
    raise errors.GdpError(
        f'Cannot read {path} as compressed JSON: {error}.') from error


def _umask() -> int:
  current = os.umask(0)
  os.umask(current)
  return current
