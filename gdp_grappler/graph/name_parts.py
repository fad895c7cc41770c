"""What names of ops and variables tell; needs no TensorFlow."""

from __future__ import annotations

import re
import sys

_NUMBER = re.compile(r'_\d+$')
# Put before the path of the op that something was made for.
_CALLERS = re.compile(
    r'^(((Stateful)?PartitionedCall|Func|gradients|gradient_tape)(_\d+)?/)*')
_GUESS = re.compile(r'(/|_)variable(/slot_\d+)?$')


def node_of(tensor: str) -> str:
  """The node of a tensor or of an input: 'a' for 'a', 'a:1' and '^a'."""
  return tensor.lstrip('^').partition(':')[0]


def without_callers(name: str) -> str:
  """The name of an op without the scopes of its callers and of gradients."""
  return _CALLERS.sub('', name)


def is_caller(part: str) -> bool:
  """Whether a part of a name is a scope of callers or of gradients."""
  return _CALLERS.fullmatch(f'{part}/') is not None


def without_number(part: str) -> str:
  """A part of a name without the number that made it unique: 'a' for 'a_1'."""
  return _NUMBER.sub('', part)


def is_guess(name: str) -> bool:
  """Whether `variable_names.guessed` made up a name."""
  return _GUESS.search(name) is not None


def names_an_op(part: str) -> bool:
  """Whether a part of a name is an op's and no scope, such as 'BiasAdd_1'."""
  if 'tensorflow' not in sys.modules:
    return False  # A graph of costs alone.
  from tensorflow.python.framework import op_def_registry
  return op_def_registry.get(without_number(part)) is not None
