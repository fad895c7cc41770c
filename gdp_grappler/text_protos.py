"""Protobuf text that strangers wrote.

Protobuf is imported here and only where it is needed: most commands read none.
"""

from __future__ import annotations

from typing import Any, TypeVar
import warnings

_Message = TypeVar('_Message', bound=Any)


def parse(text: str, message: _Message,
          allow_unknown_field: bool = False) -> _Message:
  """Reads text into a message and returns it.

  Args:
    text: In protobuf's text format.
    message: Empty; half full after an error.
    allow_unknown_field: Whether to pass over fields that it does not have.

  Raises:
    ValueError: it is no such text, whatever protobuf makes of that: an error,
      a warning of Python's that only developers see, or too deep a recursion.
  """
  from google.protobuf import text_format
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('error', DeprecationWarning)
      return text_format.Parse(text, message,
                               allow_unknown_field=allow_unknown_field)
  except (text_format.ParseError, DeprecationWarning, RecursionError) as error:
    raise ValueError(str(error)) from error
