"""Writes files whole or not at all."""

from __future__ import annotations

import os
import pathlib
import tempfile

from gdp_grappler import errors


def write_atomically(path: str | os.PathLike[str], data: bytes | str) -> None:
  """Replaces a file in one step; a reader never sees half of it.

  Args:
    path: Its folder has to exist.
    data: The whole new content; text is written as UTF-8.

  Raises:
    GdpError: the file cannot be written; what was there before still is.
  """
  path = pathlib.Path(path)
  data = data.encode() if isinstance(data, str) else data
  temporary = None
  try:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f'.{path.name}')
    with os.fdopen(handle, 'wb') as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.chmod(temporary, 0o666 & ~_umask())
    os.replace(temporary, path)
  except OSError as error:
    raise errors.GdpError(
        f'Cannot write {path}: {error.strerror}. Free some space, or write '
        'somewhere else.') from error
  finally:
    if temporary and os.path.exists(temporary):
      os.unlink(temporary)


def _umask() -> int:
  current = os.umask(0)
  os.umask(current)
  return current
