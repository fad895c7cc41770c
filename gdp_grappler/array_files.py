"""Reads numpy's archives of arrays without running code that they contain.

This module is separate from `files`, because programs import `files` before
numpy.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib

import numpy as np

from gdp_grappler import files

# Errors that Python and numpy raise when they read a damaged archive.
_NO_ARCHIVE = (ArithmeticError, AttributeError, EOFError, LookupError,
               MemoryError, RuntimeError, SyntaxError, TypeError, struct.error,
               zipfile.BadZipFile, zlib.error)


def read(path: str | os.PathLike[str],
         most_bytes: int = files.MOST_TEXT_BYTES) -> dict[str, np.ndarray]:
  """Returns the arrays of numbers and text in a file of `np.savez`, by name.

  Args:
    path: The file.
    most_bytes: Largest size of the file, and of its unpacked content.

  Raises:
    OSError: the file cannot be read; see `files.read`.
    ValueError: the file is damaged, unpacks to more than `most_bytes`, or
      holds something other than arrays.
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
