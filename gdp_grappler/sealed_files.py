"""JSON files with a format, a version and a digest.

Profiles, calibrations and other measurements are kept in these files. A file
that was damaged or edited is refused with one error.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any, Callable, Mapping, TypeVar

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files

_T = TypeVar('_T')


@dataclasses.dataclass(frozen=True)
class Format:
  """A file format.

  Attributes:
    name: Name of the format in the files.
    version: Version of the format.
    what: The user's name of the content, such as 'profile'.
    command: Command that makes a file of the format.
    most_bytes: Largest size of a file that is read.
  """

  name: str
  version: int
  what: str
  command: str
  most_bytes: int = files.MOST_TEXT_BYTES

  def head(self) -> dict[str, Any]:
    """Returns the first fields of every file."""
    return {'format': self.name, 'version': self.version}

  def to_text(self, fields: Mapping[str, Any]) -> str:
    """Returns the text of a file: fields, `head` included, and their digest."""
    return json.dumps(digests.sealed(fields)) + '\n'

  def read(self, path: str | os.PathLike[str]) -> bytes:
    """Returns the content of a file without checking it.

    Raises:
      GdpError: the file cannot be read.
    """
    try:
      return files.read(path, self.most_bytes)
    except OSError as error:
      raise errors.GdpError(
          f'Cannot read {self.what} {path}: {error.strerror}. Make one with '
          f'`{self.command}`.') from error

  def parsed(self, data: bytes, path: str | os.PathLike[str],
             build: Callable[[Mapping[str, Any]], _T]) -> _T:
    """Returns the object that `build` makes of the fields in a file's text.

    Args:
      data: The text.
      path: Path of the file, for messages.
      build: Function of the fields. It raises KeyError, TypeError, ValueError
        or OverflowError if they are damaged.

    Raises:
      GdpError: the text is damaged, was edited, or has another format.
    """
    try:
      content = files.parse_json(data)
    except ValueError as error:
      raise self._damaged(path, f'it is not JSON ({error})') from error
    return self.built(content, path, build)

  def built(self, content: Any, path: str | os.PathLike[str],
            build: Callable[[Mapping[str, Any]], _T]) -> _T:
    """Does the same as `parsed` for JSON that has been parsed already."""
    if not isinstance(content, dict) or content.get('format') != self.name:
      raise self._damaged(path, f'its format is not "{self.name}"')
    if content.get('version') != self.version:
      raise self._damaged(
          path, f'its version is {errors.shown(content.get("version"))}, this '
          f'program reads {self.version}')
    try:
      result = build(content)
    except KeyError as error:
      raise self._damaged(path, f'field {error} is missing') from error
    except (TypeError, ValueError, OverflowError) as error:
      raise self._damaged(path, str(error)) from error
    if digests.differs(content):
      raise self._damaged(path, 'it was changed since it was written')
    return result

  def _damaged(self, path: str | os.PathLike[str], why: str) -> errors.GdpError:
    return errors.GdpError(f'{path} is not a usable {self.what}: {why}. Make '
                           f'it anew with `{self.command}`.')


def text(content: Mapping[str, Any], field: str) -> str:
  """Returns a field that is text; for functions that `parsed` calls.

  Raises:
    KeyError: the field is missing.
    ValueError: the field is no text.
  """
  if not isinstance(content[field], str):
    raise ValueError(f'{field} is no text')
  return content[field]


def texts(content: Mapping[str, Any], field: str) -> tuple[str, ...]:
  """Returns a field that is a list of texts; see `text`.

  Raises:
    KeyError: the field is missing.
    ValueError: the field is no list of texts.
  """
  values = content[field]
  if not isinstance(values, list) or not all(
      isinstance(value, str) for value in values):
    raise ValueError(f'{field} is no list of texts')
  return tuple(values)
