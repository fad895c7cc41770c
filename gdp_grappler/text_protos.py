"""Parses protobuf text, such as that of users' files.

The module imports protobuf only when it parses: most commands read no protobuf.
"""

from __future__ import annotations

from typing import Any, TypeVar
import warnings

_Message = TypeVar('_Message', bound=Any)


def parse(text: str, message: _Message,
          allow_unknown_field: bool = False) -> _Message:
  """Parses text into a message and returns the message.

  Args:
    text: Text in protobuf's text format.
    message: An empty message. After an error it may have some of the fields.
    allow_unknown_field: Whether to skip fields that the message type lacks.

  Raises:
    ValueError: the text is wrong. Protobuf itself reports this by an error, by
      a DeprecationWarning, or by exceeding the recursion limit.
  """
  from google.protobuf import text_format
  try:
    with warnings.catch_warnings():
      warnings.simplefilter('error', DeprecationWarning)
      return text_format.Parse(text, message,
                               allow_unknown_field=allow_unknown_field)
  except (text_format.ParseError, DeprecationWarning, RecursionError) as error:
    raise ValueError(str(error)) from error
