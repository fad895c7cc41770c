"""Archives of arrays, anybody's, read without running what they hold.

Apart from `files`, which programs import before numpy.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib

import numpy as np

from gdp_grappler import files

# What Python and numpy raise over a damaged archive of arrays.
_NO_ARCHIVE = (ArithmeticError, AttributeError, EOFError, LookupError,
               MemoryError, RuntimeError, SyntaxError, TypeError, struct.error,
               zipfile.BadZipFile, zlib.error)


def read(path: str | os.PathLike[str],
         most_bytes: int = files.MOST_TEXT_BYTES) -> dict[str, np.ndarray]:
  """Arrays of numbers and of text by name, as `np.savez` writes them.

  Args:
    path: The file.
    most_bytes: It is not read if it is larger or unpacks to more.

  Raises:
    OSError: as of `files.read`.
    ValueError: it is damaged, or holds something else.
  """
  data = files.read(path, most_bytes)
  try:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
      size = sum(entry.file_size for entry in archive.infolist())
    if size > most_bytes:
      raise ValueError(f'it unpacks to {size} bytes')
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
      result = dict(arrays)
  except _NO_ARCHIVE as error:
    raise ValueError(str(error) or type(error).__name__) from error
  if not all(isinstance(array, np.ndarray) for array in result.values()):
    raise ValueError('it holds something else than arrays')
  return result
