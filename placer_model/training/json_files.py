"""JSON files of a model directory."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Mapping

from gdp_grappler import errors
from gdp_grappler import files


def write_json(path: pathlib.Path, value: float | Mapping[str, Any]) -> None:
  """Replaces `path` by `value` as JSON; a reader never sees a partial file.

  Raises:
    GdpError: the file cannot be written; its previous content stays.
  """
  files.write_atomically(path,
                         json.dumps(value, indent=2, allow_nan=False) + '\n',
                         make_folder=True)


def read_json(path: pathlib.Path) -> Any:
  """Returns the value that `write_json` wrote; None without such a file.

  Raises:
    GdpError: the file is unreadable or not JSON.
  """
  try:
    return files.parse_json(files.read(path))
  except FileNotFoundError:
    return None
  except (OSError, ValueError) as error:
    raise errors.GdpError(
        f'Cannot read {path}: {error}. Restore it, or give another '
        '--model_dir.') from error
