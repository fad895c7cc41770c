"""Counts the changes of the configuration of calls.

Every thread caches the configuration of its function calls. The hook makes the
configuration anew after the count has changed.
"""

from __future__ import annotations

import itertools

# Two threads that note a change at the same time get different numbers.
_numbers = itertools.count(1)
_changes = 0


def note() -> None:
  """Makes the next call on each thread get a new configuration."""
  global _changes
  _changes = next(_numbers)


def count() -> int:
  """Returns the number of changes so far."""
  return _changes
