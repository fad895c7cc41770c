"""Functions that the user compiles by XLA, and the variables that they use.

XLA compiles a function for one device. If a variable of the function is on
another device, the call fails. So `fit` does not move such variables. If `fit`
moved a variable before the function was traced, the variable goes back.
"""

from __future__ import annotations

from typing import Any
import weakref

# By id: traced functions with jit_compile=True that still exist.
_functions: weakref.WeakValueDictionary[int,
                                        Any] = (weakref.WeakValueDictionary())


def record(function: Any) -> None:
  """Records a `tf.function(jit_compile=True)` that was traced."""
  _functions[id(function)] = function


def captured() -> set[int]:
  """Returns the ids of the handles of variables that the functions use."""
  alive = [reference() for reference in _functions.valuerefs()]
  return set().union(*(handles(item) for item in alive if item is not None))


def handles(function: Any) -> set[int]:
  """Returns the ids of the eager tensors that a traced `tf.function` captures.

  A function that was traced in another one captures arguments of the outer
  function. In their place, the result has what the outer function captures.

  Args:
    function: A `tf.function`.
  """
  from tensorflow.python.framework import ops
  concretes = [
      function._concrete_variable_creation_fn,
      *function._function_cache.values()
  ]
  result = set()
  for concrete in concretes:
    for tensor in concrete.graph.external_captures if concrete else ():
      while tensor is not None and not isinstance(tensor, ops.EagerTensor):
        tensor = _outer(tensor)
      if tensor is not None:
        result.add(id(tensor))
  return result


def _outer(tensor: Any) -> Any:
  """Returns what an argument of a function is outside; None if unknown."""
  pairs = getattr(tensor.graph, 'captures', ())
  return next((outer for outer, inner in pairs if inner is tensor), None)
