"""Models whose weights have shapes and types, and no values.

A variable of TensorFlow is a handle; its value is made when an initializer
runs. Whoever only traces a model needs the handle alone, so a model that is far
larger than this machine's memory can be planned on it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator

import tensorflow as tf
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import resource_variable_ops

_MARK = '_gdp_has_no_value'


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
  """Models made inside get weights without values: they can only be planned.

  Shapes and types are those of the initializers, which do not run. What is
  given as a value, such as the counter of an optimizer's steps, is made.

    with gdp_grappler.without_weights():
      model = make_model()                      # 100 GB
    gdp_grappler.place(model, '8xH100').show()
  """
  with tf.variable_creator_scope(_without_value):
    yield


def has_none(variables: Iterable[Any]) -> bool:
  """Whether any of these variables, of Keras or TensorFlow, has no value."""
  return any(
      hasattr(getattr(variable, '_value', variable), _MARK) or
      hasattr(variable, _MARK) for variable in variables)


def build(model: Any, inputs: Any) -> None:
  """Calls a model in a graph, so that it makes its weights, without values.

  Args:
    model: Of Keras.
    inputs: Specs of what it is called with.
  """
  with func_graph.FuncGraph('build').as_default(), without_weights():
    model(
        tf.nest.map_structure(
            lambda spec: tf.compat.v1.placeholder(spec.dtype, spec.shape),
            inputs))


def complete(model: Any) -> None:
  """Gives the optimizer of a model without values its slots, likewise.

  In a graph, since tf_keras computes what it fills slots with.

  Args:
    model: A compiled Keras model; one with values stays as it is.
  """
  if not has_none(model.trainable_variables):
    return
  with func_graph.FuncGraph('slots').as_default(), without_weights():
    model.optimizer.build(model.trainable_variables)


def _without_value(next_creator: Any, **kwargs: Any) -> Any:
  """A variable creator, as of `tf.variable_creator_scope`."""
  initial = kwargs.get('initial_value')
  if callable(initial):
    # What an initializer computes is never needed, only what it looks like.
    with func_graph.FuncGraph('initial_value').as_default():
      value = tf.convert_to_tensor(initial(), kwargs.get('dtype'))
  elif tf.is_symbolic_tensor(initial):
    value = initial
  else:
    return next_creator(**kwargs)
  with tf.init_scope():
    variable = resource_variable_ops.UninitializedVariable(
        shape=kwargs.get('shape') or value.shape, dtype=value.dtype, **{
            key: kwargs.get(key)
            for key in ('trainable', 'name', 'synchronization', 'aggregation')
        })
  setattr(variable, _MARK, True)
  return variable
