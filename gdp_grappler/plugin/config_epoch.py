"""Counts what makes the configuration of calls another one.

Every thread keeps the configuration of its calls of functions; the hook has it
made anew where the count has changed since.
"""

from __future__ import annotations

import itertools

_numbers = itertools.count(1)
_changes = [0]


def note() -> None:
  """The next call of a function needs a new configuration, on any thread."""
  _changes[0] = next(_numbers)


def count() -> int:
  """Changes so far."""
  return _changes[0]
