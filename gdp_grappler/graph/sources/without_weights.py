"""Models whose weights have shapes and types, but no values.

A variable of TensorFlow is a handle. Its value is made when an initializer
runs. Tracing a model needs only the handle, so a model that is far larger than
this machine's memory can be planned on it.
"""

from __future__ import annotations

import contextlib
from typing import Any, Iterable, Iterator
import warnings

import tensorflow as tf
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import resource_variable_ops

_MARK = '_gdp_has_no_value'


@contextlib.contextmanager
def without_weights() -> Iterator[None]:
  """Models made inside get weights without values: they can only be planned.

  Shapes and types are those of the initializers, which do not run. A variable
  with a given value, such as the counter of an optimizer's steps, has this
  value.

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
    model: A Keras model.
    inputs: Specs of the model's inputs.
  """
  with func_graph.FuncGraph('build').as_default(), without_weights():
    model(
        tf.nest.map_structure(
            lambda spec: tf.compat.v1.placeholder(spec.dtype, spec.shape),
            inputs))


def complete(model: Any) -> None:
  """Makes the optimizer's slots without values, if the model has no values.

  This is done in a graph, because tf_keras computes the initial values of
  slots.

  Args:
    model: A compiled Keras model. A model with values stays as it is.
  """
  try:
    variables = model.trainable_variables
  except ValueError:  # A layer of tf_keras has not created its weights yet.
    return
  if not has_none(variables):
    return
  optimizer = model.optimizer
  with func_graph.FuncGraph('slots').as_default(), without_weights():
    if hasattr(optimizer, 'build'):
      optimizer.build(variables)
    else:  # A legacy optimizer of tf_keras, or one of TensorFlow 1.
      with contextlib.suppress(NotImplementedError):
        optimizer._create_all_weights(variables)


def _without_value(next_creator: Any, **kwargs: Any) -> Any:
  """Creates a variable without a value; see `tf.variable_creator_scope`."""
  initial = kwargs.get('initial_value')
  if callable(initial):
    # Only the shape and type of an initializer's result are needed.
    with (func_graph.FuncGraph('initial_value').as_default(),
          warnings.catch_warnings()):
      # tf_keras warns that an initializer gives several parts of a table equal
      # values. Here no value is drawn.
      warnings.filterwarnings('ignore', 'The initializer .* is unseeded')
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
