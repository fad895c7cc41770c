"""Recognizes graphs whose names differ only in the numbers of Keras.

Keras numbers what the user did not name: 'adam', then 'adam_1'. So the same
model has other ops if the process has made another model or optimizer before.
"""

from __future__ import annotations

import collections
import re
from typing import Iterable

_NUMBER = re.compile(r'_\d+(?=/|$)')


def hint(before: Iterable[str], after: Iterable[str]) -> str:
  """Returns ' The names differ only in ...', or '' if they differ otherwise.

  Args:
    before: Names of the ops of a graph.
    after: Names of the ops of another graph.
  """
  old, new = list(before), list(after)
  old_scopes, new_scopes = _scopes(old), _scopes(new)
  gone = sorted(old_scopes - new_scopes, key=_stem)
  added = sorted(new_scopes - old_scopes, key=_stem)
  same = collections.Counter(map(_stem,
                                 old)) == collections.Counter(map(_stem, new))
  if not (same and gone and added):
    return ''
  return (' The names of their ops differ only in automatic numbers of Keras '
          f'(such as "{gone[0]}" and "{added[0]}"): name the model, its layers '
          'and the optimizer, or make the model first in a new process.')


def _scopes(names: Iterable[str]) -> set[str]:
  return {scope for name in names for scope in name.split('/')}


def _stem(name: str) -> str:
  return _NUMBER.sub('', name)
