"""Examples in docstrings, which are indented by two, as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

# Indented lines after an empty one; a section's are right below its head.
_EXAMPLE = re.compile(r'(?<=\n\n)(?: {2}.*\n?)+')


class Examples(griffe.Extension):
  """Fences them."""

  def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
    """Called for everything that has been read."""
    if obj.docstring is not None:
      head, section, rest = re.split(r'(\n\n(?=\w+:\n)|\Z)',
                                     obj.docstring.value, maxsplit=1)
      obj.docstring.value = _EXAMPLE.sub(_fenced, head) + section + rest


def _fenced(lines: re.Match[str]) -> str:
  return f'```python\n{lines[0].rstrip()}\n```\n'
