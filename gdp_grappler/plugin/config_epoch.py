"""Counts the changes of the configuration of calls.

Every thread caches the configuration of its function calls. The hook makes the
configuration anew after the count has changed.
"""

from __future__ import annotations

import itertools

_numbers = itertools.count(1)
_changes = [0]


def note() -> None:
  """Makes the next call on each thread get a new configuration."""
  _changes[0] = next(_numbers)


def count() -> int:
  """Returns the number of changes so far."""
  return _changes[0]
