"""JSON files with a format, a version and a digest.

Belongs to what the project measures and keeps, such as profiles and
calibrations: a file that was damaged or edited is refused with one error.
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
  """What such a file holds.

  Attributes:
    name: Of the format, as the file has it.
    version: Of the format.
    what: What users call the content, such as 'profile'.
    command: Makes such a file.
    most_bytes: Of a file.
  """

  name: str
  version: int
  what: str
  command: str
  most_bytes: int = files.MOST_TEXT_BYTES

  def head(self) -> dict[str, Any]:
    """The fields with which every file begins."""
    return {'format': self.name, 'version': self.version}

  def to_text(self, fields: Mapping[str, Any]) -> str:
    """A file of fields, `head` among them; one line."""
    return json.dumps(digests.sealed(fields)) + '\n'

  def read(self, path: str | os.PathLike[str]) -> bytes:
    """The content of a file, not looked at.

    Raises:
      GdpError: it cannot be read.
    """
    try:
      return files.read(path, self.most_bytes)
    except OSError as error:
      raise errors.GdpError(
          f'Cannot read {self.what} {path}: {error.strerror}. Make one with '
          f'`{self.command}`.') from error

  def parsed(self, data: bytes, path: str | os.PathLike[str],
             build: Callable[[Mapping[str, Any]], _T]) -> _T:
    """What `build` makes of the text of a file.

    Args:
      data: The text.
      path: Where it came from, for messages.
      build: Takes the fields; a KeyError, TypeError, ValueError or
        OverflowError says that they are damaged.

    Raises:
      GdpError: the text is damaged, was changed, or is of another format.
    """
    try:
      content = files.parse_json(data)
    except ValueError as error:
      raise self._damaged(path, f'it is not JSON ({error})') from error
    return self.built(content, path, build)

  def built(self, content: Any, path: str | os.PathLike[str],
            build: Callable[[Mapping[str, Any]], _T]) -> _T:
    """As `parsed`, of the JSON object itself."""
    if not isinstance(content, dict) or content.get('format') != self.name:
      raise self._damaged(path, f'its format is not "{self.name}"')
    if content.get('version') != self.version:
      raise self._damaged(
          path, f'its version is {content.get("version")!r}, this '
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
