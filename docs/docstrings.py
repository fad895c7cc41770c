"""Shows examples in docstrings, which are indented by two spaces, as code."""

from __future__ import annotations

import re
from typing import Any

import griffe

# Indented lines after an empty line. Lines of a section such as "Args:" follow
# its head at once, so they do not match.
_EXAMPLE = re.compile(r'(?<=\n\n)(?: {2}.*\n?)+')


class Examples(griffe.Extension):
  """Puts examples into fenced blocks of code."""

  def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
    """Changes the docstring of an object; griffe calls this for each object."""
    if obj.docstring is not None:
      head, section, rest = re.split(r'(\n\n(?=\w+:\n)|\Z)',
                                     obj.docstring.value, maxsplit=1)
      obj.docstring.value = _EXAMPLE.sub(_fenced, head) + section + rest


def _fenced(lines: re.Match[str]) -> str:
  return f'```python\n{lines[0].rstrip()}\n```\n'
