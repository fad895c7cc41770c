"""What a user calls a graph, before anybody knows what it is.

Needs no TensorFlow: a graph that brings its own costs is read where there is
none.
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
_MODULE_FUNCTION = re.compile(r'[^\W\d][\w.]*:[^\W\d][\w.]*')


def is_function(text: str) -> bool:
  """Whether a text has the form module:function or keras_applications:NAME."""
  return bool(_MODULE_FUNCTION.fullmatch(text))


@dataclasses.dataclass(frozen=True)
class Origin:
  """A path or a name; a file is read once, whoever asks.

  Attributes:
    text: What the user wrote.
  """

  text: str

  @property
  def path(self) -> pathlib.Path:
    """The text as a path."""
    return pathlib.Path(self.text)

  @property
  def names_function(self) -> bool:
    """Whether it stands for a function; what exists is no function."""
    return is_function(self.text) and not self.exists

  @property
  def exists(self) -> bool:
    """Whether there is anything of this path."""
    return self._status is not None

  @property
  def is_file(self) -> bool:
    """Whether it is a regular file."""
    return self._status is not None and stat.S_ISREG(self._status.st_mode)

  @property
  def is_folder(self) -> bool:
    """Whether it is a directory."""
    return self._status is not None and stat.S_ISDIR(self._status.st_mode)

  @functools.cached_property
  def _status(self) -> os.stat_result | None:
    """Of the path; None if there is nothing.

    Raises:
      InvalidGraphError: nobody can tell, as of a name that is too long.
    """
    try:
      return self.path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
      # A path with a null byte is a wrong value.
      return None
    except OSError as error:
      raise errors.InvalidGraphError(
          f'Cannot read graph {self.text}: {error.strerror}.') from error

  @functools.cached_property
  def data(self) -> bytes:
    """What the file holds.

    Raises:
      InvalidGraphError: it is missing or cannot be read.
    """
    try:
      return files.read(self.path, files.MOST_PROTO_BYTES)
    except FileNotFoundError as error:
      raise errors.InvalidGraphError(
          f'Graph {self.text} does not exist. Give {KINDS}.') from error
    except OSError as error:
      raise errors.InvalidGraphError(
          f'Cannot read graph {self.text}: {error.strerror}.') from error
