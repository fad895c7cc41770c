"""Writes and reads files: as a whole or not at all.

A path from a user may be a pipe without a writer, a device without an end, or a
file larger than the memory. The functions that read refuse these.
"""

from __future__ import annotations

import collections
import errno
import gzip
import io
import json
import os
import pathlib
import stat
import tempfile
from typing import Any, Callable, IO, Sequence
import zlib

from gdp_grappler import errors

# Largest text file that is read. Its Python objects need several times its
# size. A plan for a million ops with long names is smaller.
MOST_TEXT_BYTES = 256 << 20
# Protobuf's own limit for a message.
MOST_PROTO_BYTES = (2 << 30) - 1
_PART_BYTES = 1 << 20  # Bytes that are read at a time.
_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_READ_ONLY = 'it is read-only'
# The prefix is short, because a prefix of the file's own name plus a suffix
# could exceed the longest possible name.
_PREFIX = '.gdp'
# Pattern of the names of unfinished files, which a killed process leaves.
UNFINISHED = f'{_PREFIX}????????'


def read(path: str | os.PathLike[str],
         most_bytes: int = MOST_TEXT_BYTES) -> bytes:
  """Returns the content of a regular file.

  Args:
    path: The file.
    most_bytes: Largest size of a file that is read.

  Raises:
    OSError: the file is missing, unreadable, not regular or too large;
      `strerror` says which.
  """
  # Without O_NONBLOCK, opening a pipe without a writer would never return.
  handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
  try:
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
      raise OSError(errno.EINVAL, 'it is no regular file', str(path))
    if status.st_size > most_bytes:
      raise too_large(path, most_bytes)
    with os.fdopen(handle, 'rb', closefd=False) as file:
      return _no_more_than(file, most_bytes, path)
  finally:
    os.close(handle)


def parse_json(
    data: bytes | str,
    pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
  """Returns the value of a JSON text.

  Args:
    data: The text, as UTF-8 with or without a byte order mark.
    pairs: Function that makes a Python object of the names and values of a JSON
      object; by default a dict.

  Raises:
    ValueError: the text is not JSON, or exceeds Python's recursion limit.
  """
  try:
    text = data.decode('utf-8-sig') if isinstance(data, bytes) else data
    return json.loads(text, object_pairs_hook=pairs)
  except RecursionError:
    raise ValueError('it is nested too deeply') from None


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
  """Returns a JSON object as a dict, for `parse_json`.

  Raises:
    ValueError: a name appears twice, as after an edit. Python's own reader
      would take the last one, and ignore the others.
  """
  fields = dict(pairs)
  if len(fields) < len(pairs):
    twice = collections.Counter(name for name, _ in pairs).most_common(1)[0][0]
    raise ValueError(f'"{twice}" appears twice in one object; remove one')
  return fields


def _no_more_than(file: IO[bytes] | gzip.GzipFile, most_bytes: int,
                  path: str | os.PathLike[str]) -> bytes:
  """Reads a whole file, and checks its size, which is unknown or may grow."""
  parts, left = [], most_bytes
  while part := file.read(_PART_BYTES):
    parts.append(part)
    left -= len(part)
    if left < 0:
      raise too_large(path, most_bytes)
  return b''.join(parts)


def too_large(path: str | os.PathLike[str], most_bytes: int) -> OSError:
  """Returns the error for a file of more than `most_bytes`."""
  return OSError(errno.EFBIG, f'it has more than {most_bytes} bytes', str(path))


def check_writable(path: str | os.PathLike[str]) -> None:
  """Checks that a file can be written, before the work for its content.

  The function makes an empty file beside it, and removes this file.

  Args:
    path: A path for `write_atomically`.

  Raises:
    GdpError: the file cannot be written.
  """
  try:
    status = _status(path)
    if status and stat.S_ISDIR(status.st_mode):
      raise _not_written(path, 'it is a folder')
    if status and not stat.S_ISREG(status.st_mode):
      return  # A device or a pipe.
    if _is_read_only(path, status):
      raise _not_written(path, _READ_ONLY)
    folder = pathlib.Path(os.path.realpath(path)).parent
    if not folder.is_dir():
      raise _not_written(path, 'its folder does not exist')
    _try(folder)
  except NotADirectoryError as error:
    raise _not_written(path, 'a part of its folder is a file') from error
  except OSError as error:
    raise _not_written(
        path, f'no file can be made there ({error.strerror})') from error


def check_folder(path: str | os.PathLike[str]) -> None:
  """Checks that files can be written to a folder, which may be missing.

  Args:
    path: A folder. The function does not make it.

  Raises:
    GdpError: the folder cannot be made, or takes no files.
  """
  folder = pathlib.Path(os.path.realpath(path))
  try:
    while not _status(folder):
      folder = folder.parent
    _try(folder)
  except NotADirectoryError as error:
    raise _not_written(path,
                       f'a part of it, {_file_in(path)}, is a file') from error
  except OSError as error:
    raise _not_written(
        path, f'no file can be made in {folder} ({error.strerror})') from error


def _try(folder: pathlib.Path) -> None:
  """Makes an empty file in a folder, and removes it."""
  if not folder.is_dir():
    raise NotADirectoryError
  handle, temporary = tempfile.mkstemp(dir=folder, prefix=_PREFIX)
  os.close(handle)
  os.unlink(temporary)


def _file_in(path: str | os.PathLike[str]) -> pathlib.Path:
  """Returns the part of a path that is no folder."""
  whole = pathlib.Path(path)
  return next(part for part in (whole, *whole.parents)
              if os.path.lexists(part) and not part.is_dir())


def _is_read_only(path: str | os.PathLike[str],
                  status: os.stat_result | None) -> bool:
  """Whether a user has protected a file from being written.

  A rename would replace a protected file. For root, `os.access` allows writing
  to every file, so the mode of the file counts, too.

  Args:
    path: The file.
    status: Its status; None if there is no file.
  """
  return status is not None and not (status.st_mode & _WRITE_BITS and
                                     os.access(path, os.W_OK))


def _not_written(path: str | os.PathLike[str], why: str) -> errors.GdpError:
  return errors.GdpError(f'Cannot write {path}: {why}. Name another place.')


def write_atomically(path: str | os.PathLike[str], data: bytes | str,
                     make_folder: bool = False, private: bool = False) -> None:
  """Replaces a file in one step, so that no reader sees an unfinished file.

  Args:
    path: The file. A link is followed. A device, or a pipe with a reader, gets
      the data without a replacement. An existing file keeps its mode.
    data: The whole new content. Text is written as UTF-8. Bytes of file names
      that are no UTF-8 are written as Python's escapes.
    make_folder: Whether to make the file's folder if it does not exist.
    private: Whether only this user may read the file and the folders that are
      made. Then an existing file does not keep its mode, and is replaced even
      if it is read-only.

  Raises:
    GdpError: the file cannot be written. An old file is unchanged.
  """
  if isinstance(data, str):
    data = data.encode(errors='backslashreplace')
  try:
    status = _status(path)
    # Data go into a device or a pipe, because a rename would remove these.
    if (status and not stat.S_ISREG(status.st_mode) and _is_taken(path, data)):
      return
    if not private and _is_read_only(path, status):
      raise _not_written(path, _READ_ONLY)
    # A link stays a link.
    target = pathlib.Path(os.path.realpath(path))
    if make_folder:
      _make(target.parent, 0o700 if private else 0o777)
    if private:
      mode = 0o600
    else:
      mode = stat.S_IMODE(status.st_mode) if status else 0o666 & ~_umask()
    _replace(target, data, mode)
  except OSError as error:
    raise errors.GdpError(
        f'Cannot write {path}: {error.strerror}. Make room or name '
        'another place; what was there is unchanged.') from error


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
  """Returns the status of a file, through links; None if there is no file."""
  try:
    return os.stat(path)
  except FileNotFoundError:
    return None


def _is_taken(path: str | os.PathLike[str], data: bytes) -> bool:
  """Writes to a device or a pipe; returns False if the pipe has no reader.

  A blocking open of a pipe without a reader might never return.
  """
  try:
    handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
  except OSError as error:
    if error.errno == errno.ENXIO:
      return False
    raise
  os.set_blocking(handle, True)
  with os.fdopen(handle, 'wb') as file:
    file.write(data)
  return True


def _replace(target: pathlib.Path, data: bytes, mode: int) -> None:
  """Replaces a regular file, or makes it."""
  handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=_PREFIX)
  try:
    with os.fdopen(handle, 'wb') as file:
      file.write(data)
      file.flush()
      os.fsync(file.fileno())
    os.chmod(temporary, mode)
    os.replace(temporary, target)
  finally:
    if os.path.exists(temporary):
      os.unlink(temporary)


def _make(folder: pathlib.Path, mode: int) -> None:
  """Makes a folder and its missing parents."""
  missing = []
  while not folder.is_dir():
    missing.append(folder)
    folder = folder.parent
  for each in reversed(missing):
    each.mkdir(mode, exist_ok=True)


def write_compressed_json(path: str | os.PathLike[str], value: Any) -> None:
  """Replaces a file by compressed JSON; equal values give equal files.

  Raises:
    GdpError: the file cannot be written. An old file is unchanged.
  """
  text = json.dumps(value, allow_nan=False) + '\n'
  write_atomically(path, gzip.compress(text.encode(), mtime=0))


def read_compressed_json(path: str | os.PathLike[str]) -> Any:
  """Returns the value in a file of `write_compressed_json`.

  Raises:
    GdpError: the file is missing or damaged.
  """
  try:
    with gzip.open(io.BytesIO(read(path))) as file:
      # A small file may unpack to any size.
      return parse_json(_no_more_than(file, MOST_TEXT_BYTES, path))
  except (OSError, EOFError, ValueError, zlib.error) as error:
    why = getattr(error, 'strerror', None) or error
    raise errors.GdpError(
        f'Cannot read {path} as compressed JSON: {why}.') from error


def _umask() -> int:
  """Returns the umask of the process, if possible without changing it.

  `os.umask` can only read the umask by setting it.
  """
  try:
    for line in read('/proc/self/status').splitlines():
      if line.startswith(b'Umask:'):
        return int(line.split()[1], 8)
  except OSError:
    pass  # A system without /proc.
  current = os.umask(0)
  os.umask(current)
  return current
