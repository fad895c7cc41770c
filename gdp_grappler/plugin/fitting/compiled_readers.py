"""Functions that XLA compiles, and the variables that they use.

XLA compiles a function for one device. If a variable of the function is on
another device, the call fails. So `fit` does not move the variables of
functions that the user compiles, nor those of another model's steps. If `fit`
moved a variable before the function was traced, the variable goes back.
"""

from __future__ import annotations

import contextlib
import contextvars
from typing import Any, Iterator
import weakref

# Names of the functions, in Keras 3 and tf_keras, that XLA compiles for a step.
_STEPS = ('one_step_on_data', 'run_step')
_KERAS = ('keras', 'tf_keras')

# Traced functions with jit_compile=True that still exist. The key is the id of
# the function.
_functions: weakref.WeakValueDictionary[int,
                                        Any] = (weakref.WeakValueDictionary())
# The model of each function that is a step of a model. The key is the id of the
# function.
_models: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

# The model whose steps this thread runs.
_model = contextvars.ContextVar[Any]('model', default=None)


@contextlib.contextmanager
def steps_of(model: Any) -> Iterator[None]:
  """In the context, this thread runs steps of a model."""
  token = _model.set(model)
  try:
    yield
  finally:
    _model.reset(token)


def record(function: Any) -> bool:
  """Records a `tf.function(jit_compile=True)` that was traced.

  Returns:
    Whether the function will run. A step of Keras that was traced outside of
    `steps_of` does not run, and is not recorded.
  """
  _models.pop(id(function), None)
  if _is_step(function):
    if (model := _model.get()) is None:
      return False
    _models[id(function)] = model
  _functions[id(function)] = function
  return True


def _is_step(function: Any) -> bool:
  """Whether Keras, and not the user, wrote a function."""
  python = function.python_function
  module = getattr(python, '__module__', None) or ''
  return (getattr(python, '__name__', '') in _STEPS and
          module.split('.')[0] in _KERAS)


def captured(model: Any = None) -> set[int]:
  """Returns the ids of the handles of variables that the functions use.

  Args:
    model: A model whose own steps do not count; None for no model.
  """
  alive = [
      function for number, function in list(_functions.items())
      if model is None or _models.get(number) is not model
  ]
  return set().union(*map(handles, alive))


def handles(function: Any) -> set[int]:
  """Returns the ids of the eager tensors that a traced `tf.function` captures.

  A function that was traced in another one captures arguments of the outer
  function. In place of these arguments, the result has the tensors that the
  outer function captures.

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
  """Returns the caller's tensor for an argument of a function, or None."""
  pairs = getattr(tensor.graph, 'captures', ())
  return next((outer for outer, inner in pairs if inner is tensor), None)
