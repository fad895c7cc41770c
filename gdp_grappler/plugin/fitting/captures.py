"""The traced functions in a Keras function, and the variables they receive."""

from __future__ import annotations

import functools
import types
from typing import Any, Iterator


def concrete_functions(function: Any) -> dict[str, Any]:
  """What a Python function has traced so far, by the name the runtime knows.

  Args:
    function: Such as Keras makes: the `tf.function`s are in its closure, or in
      theirs.
  """
  return {
      concrete.name.decode(): concrete for polymorphic in functions(function)
      for concrete in polymorphic._list_all_concrete_functions()
  }


def is_compiled(function: Any) -> bool:
  """Whether XLA compiles one of the `tf.function`s in a Python function."""
  return any(polymorphic._jit_compile for polymorphic in functions(function))


def variables(concrete: Any) -> dict[int, Any]:
  """The variables of a traced function by the number of their argument."""
  positions = {id(tensor): i for i, tensor in enumerate(concrete.inputs)}
  result = {}
  for outer, inner in concrete.graph.captures:
    trackable = getattr(outer, '_parent_trackable', lambda: None)()
    if trackable is not None and id(inner) in positions:
      result[positions[id(inner)]] = trackable
  return result


def functions(function: Any) -> Iterator[Any]:
  """The `tf.function`s that a function calls, itself included."""
  from tensorflow.python.eager.polymorphic_function import polymorphic_function
  seen: set[int] = set()
  waiting = [function]
  while waiting:
    item = waiting.pop()
    if id(item) in seen:
      continue
    seen.add(id(item))
    if isinstance(item, polymorphic_function.Function):
      yield item
      waiting.append(item.python_function)
    elif isinstance(item, functools.partial):
      waiting.append(item.func)
    elif isinstance(item, types.FunctionType):
      waiting.extend(_contents(item))


def _contents(function: types.FunctionType) -> Iterator[Any]:
  for cell in function.__closure__ or ():
    try:
      yield cell.cell_contents
    except ValueError:  # It is not filled yet.
      continue
