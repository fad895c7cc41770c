"""The user's name of a graph, before the kind of graph is known.

Needs no TensorFlow, because graphs with their own costs are read without it.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import stat

from gdp_grappler import errors
from gdp_grappler import files

KINDS = ('a captured graph or a folder of them, a GraphDef, a MetaGraph, a '
         'SavedModel directory, a .keras file, module:function or '
         'keras_applications:NAME')
APPLICATIONS = 'keras_applications:'
# First bytes of an HDF5 file and of a zip archive.
HDF5, ZIP = b'\x89HDF\r\n', b'PK'
_WORKLOADS = 'the name of a workload such as rnnlm-2'
_MODULE_FUNCTION = re.compile(r'[^\W\d][\w.]*:[^\W\d][\w.]*')


def is_function(text: str) -> bool:
  """Whether a text has the form module:function or keras_applications:NAME."""
  return bool(_MODULE_FUNCTION.fullmatch(text))


@dataclasses.dataclass(frozen=True)
class Origin:
  """A path or a name of a graph. Its `data` is read only once.

  Attributes:
    text: The text that the user typed.

  Raises:
    InvalidGraphError: the text is empty.
  """

  text: str

  def __post_init__(self) -> None:
    # A path of '' would be the current folder.
    if not self.text:
      raise errors.InvalidGraphError(
          f'No graph is given: its name is empty. Give {KINDS}, or '
          f'{_WORKLOADS}.')

  @property
  def path(self) -> pathlib.Path:
    """The text as a path."""
    return pathlib.Path(self.text)

  @property
  def names_function(self) -> bool:
    """Whether the text names a function. An existing path is no function."""
    return is_function(self.text) and not self.exists

  @property
  def exists(self) -> bool:
    """Whether the path exists."""
    return self._status is not None

  def check_path(self) -> None:
    """Raises an error if the text can only be a path, and the path is missing.

    This check does not need the list of workloads, which takes long to load.

    Raises:
      InvalidGraphError: there is no such path, or its status cannot be read.
    """
    is_path = os.sep in self.text or '.' in self.text
    if is_path and not self.exists and not self.names_function:
      raise errors.InvalidGraphError(self.absent())

  def absent(self, near: str = '') -> str:
    """Returns a message that the graph does not exist.

    Args:
      near: A sentence with a similar name, see `suggestions.did_you_mean`.
    """
    return (f'Graph {self.text} does not exist.{near} Give {KINDS}, or '
            f'{_WORKLOADS}.')

  @property
  def is_file(self) -> bool:
    """Whether the path is a regular file."""
    return self._status is not None and stat.S_ISREG(self._status.st_mode)

  @property
  def is_folder(self) -> bool:
    """Whether the path is a directory."""
    return self._status is not None and stat.S_ISDIR(self._status.st_mode)

  @functools.cached_property
  def _status(self) -> os.stat_result | None:
    """The status of the path; None if the path does not exist.

    Raises:
      InvalidGraphError: the status cannot be read, for example because the name
        is too long.
    """
    try:
      return self.path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
      # ValueError: the path has a null byte.
      return None
    except OSError as error:
      raise errors.InvalidGraphError(
          f'Cannot read graph {self.text}: {error.strerror}.') from error

  @property
  def is_archive(self) -> bool:
    """Whether the file is HDF5 or a zip archive, as Keras models are.

    Such a file may be larger than `data` can be.
    """
    return self.head.startswith((HDF5, ZIP))

  @functools.cached_property
  def head(self) -> bytes:
    """The first bytes of the file; b'' if it cannot be read."""
    if not self.is_file:
      return b''
    try:
      with self.path.open('rb') as file:
        return file.read(len(HDF5))
    except OSError:
      return b''  # `data` says why.

  @functools.cached_property
  def data(self) -> bytes:
    """The content of the file.

    Raises:
      InvalidGraphError: the file is missing or cannot be read.
    """
    try:
      return files.read(self.path, files.MOST_PROTO_BYTES)
    except FileNotFoundError as error:
      raise errors.InvalidGraphError(
          f'Graph {self.text} does not exist. Give {KINDS}.') from error
    except OSError as error:
      raise errors.InvalidGraphError(
          f'Cannot read graph {self.text}: {error.strerror}.') from error
