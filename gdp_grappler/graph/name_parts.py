"""Parts of names of ops and variables. Uses TensorFlow only if it is loaded."""

from __future__ import annotations

import re
import sys

_NUMBER = re.compile(r'_\d+$')
# Scopes that TensorFlow puts before the name of the op that is inlined or
# differentiated.
_CALLERS = re.compile(
    r'^(((Stateful)?PartitionedCall|Func|gradients|gradient_tape)(_\d+)?/)*')
_CALLS = re.compile(r'^(((Stateful)?PartitionedCall|Func)(_\d+)?/)*')
_INFIX = re.compile(r'[^/]+/(?=_\d+$)')
_GRADIENTS = re.compile(r'(^|/)gradient(s|_tape)(_\d+)?/')
# Scopes of ops that Grappler has made. They are no layers, and may be inside or
# outside the scopes of the op that Grappler replaced.
OF_GRAPPLER = frozenset(
    ('ArithmeticOptimizer', 'ConstantFolding', 'ConstantFoldingCtrl',
     'DependencyOptimizer', 'LoopOptimizer'))
_GUESS = re.compile(r'(/|_)variable(/slot_\d+)?$')


def node_of(tensor: str) -> str:
  """Returns the node of a tensor or an input: 'a' for 'a', 'a:1' and '^a'."""
  return tensor.lstrip('^').partition(':')[0]


def without_callers(name: str) -> str:
  """Returns an op's name without the scopes of its callers and of gradients."""
  return _CALLERS.sub('', name)


def without_calls(name: str) -> str:
  """Returns an op's name without the calls that it was inlined from."""
  return _CALLS.sub('', name)


def without_infix(name: str) -> str:
  """Returns an op's name without what only looks like its innermost scope.

  Where TensorFlow inlines calls and lowers loops, it makes ops such as
  'Func/net/call/input/_2' and 'while/enter/_3'.
  """
  return _INFIX.sub('', name)


def is_caller(part: str) -> bool:
  """Whether a part of a name is a scope of a caller or of gradients."""
  return _CALLERS.fullmatch(f'{part}/') is not None


def is_gradient(name: str) -> bool:
  """Whether an op is in the scope of gradients, as its name tells."""
  return _GRADIENTS.search(name) is not None


def without_number(part: str) -> str:
  """Returns a part of a name without its unique number: 'a' for 'a_1'."""
  return _NUMBER.sub('', part)


def is_guess(name: str) -> bool:
  """Whether a name is one that `variable_names.guessed` made up."""
  return _GUESS.search(name) is not None


def names_an_op(part: str) -> bool:
  """Whether a part of a name is an op, such as 'BiasAdd_1', not a scope."""
  if 'tensorflow' not in sys.modules:
    return False  # The graph has its own costs, and no ops of TensorFlow.
  from tensorflow.python.framework import op_def_registry
  return op_def_registry.get(without_number(part)) is not None
