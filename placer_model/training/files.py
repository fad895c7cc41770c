"""Writes files whole or not at all."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile

from gdp_grappler import errors


def write_json(path: pathlib.Path, value):
  """Replaces `path` by `value` as JSON; a reader never sees half of it.

  Raises:
    GdpError: the file cannot be written; what was there before still is.
  """
  text = json.dumps(value, indent=2, allow_nan=False) + '\n'
  temporary = None
  try:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent,
                                         prefix=f'.{path.name}.')
    with os.fdopen(handle, 'w') as file:
      file.write(text)
      file.flush()
      os.fsync(file.fileno())
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
  except OSError as error:
    if temporary and os.path.exists(temporary):
      os.unlink(temporary)
    raise errors.GdpError(
        f'Cannot write {path}: {error.strerror}. Free some space or give '
        'another --model_dir.') from error


def read_json(path: pathlib.Path):
  """What `write_json` wrote; None if there is no such file.

  Raises:
    GdpError: the file is unreadable or not JSON.
  """
  try:
    return json.loads(path.read_text())
  except FileNotFoundError:
    return None
  except (OSError, ValueError) as error:
    raise errors.GdpError(
        f'Cannot read {path}: {error}. Restore it or give another --model_dir.'
    ) from error
