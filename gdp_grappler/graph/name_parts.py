"""What names of ops and variables tell; needs no TensorFlow."""

from __future__ import annotations

import re
import sys

_NUMBER = re.compile(r'_\d+$')
_GUESS = re.compile(r'(/|_)variable(/slot_\d+)?$')


def is_guess(name: str) -> bool:
  """Whether `variable_names.guessed` made up a name."""
  return _GUESS.search(name) is not None


def names_an_op(part: str) -> bool:
  """Whether a part of a name is an op's and no scope, such as 'BiasAdd_1'."""
  if 'tensorflow' not in sys.modules:
    return False  # A graph of costs alone.
  from tensorflow.python.framework import op_def_registry
  return op_def_registry.get(_NUMBER.sub('', part)) is not None
