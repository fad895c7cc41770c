"""Specs of one batch: types and shapes of the tensors that `fit` gets."""

from __future__ import annotations

from typing import Any, Callable

from absl import logging
import numpy as np
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph.sources import captures
from gdp_grappler.graph.sources import training_step


def of(data: Any, batch_size: int, tell: Callable[[str],
                                                  None] = logging.info) -> Any:
  """Returns what `train_step` gets, with specs in place of tensors.

  This is x, (x,), (x, y) or (x, y, weights). Like `fit`, `of` puts x alone in a
  tuple only if x is a list or a tuple, and leaves batches of a data set as they
  are.

  Args:
    data: One batch as `fit` takes it: arrays, tensors or specs, or a
      `tf.data.Dataset` of such batches. Data that is not a tuple is x alone, as
      is (x,). In place of y and of weights, None means that there are none.
    batch_size: Size of unknown first dimensions.
    tell: Function that is called with a line if the data is not dense.

  Raises:
    InvalidGraphError: the data is empty, or contains other objects.
  """
  element = (data.element_spec
             if isinstance(data, tf.data.Dataset) else _packed(data))
  return _of_element(element, batch_size, tell)


def _packed(data: Any) -> Any:
  """Returns an element of the data set that `fit` makes of its arguments."""
  given = data if isinstance(data, tuple) else (data,)
  _check_size(given)
  x, y, weights = (*given, None, None)[:3]
  if y is not None:
    return (x, y) if weights is None else (x, y, weights)
  return (x,) if isinstance(x, (list, tuple)) else x


def _check_size(batch: tuple[Any, ...]) -> None:
  if not 0 < len(batch) <= 3:
    raise errors.InvalidGraphError(
        f'data is a tuple of {len(batch)} elements. Give one batch as fit '
        'takes it: x, (x, y) or (x, y, weights).')


def _of_element(element: Any, batch_size: int, tell: Callable[[str],
                                                              None]) -> Any:
  """Returns specs for one element of the data set that `fit` makes."""
  batch = element if isinstance(element, tuple) else (element,)
  _check_size(batch)
  if not all(map(training_step.is_dense, tf.nest.flatten(batch))):
    tell(f'data: {training_step.AS_DENSE}')
  specs = tuple(_specs(part, batch_size) for part in batch)
  return specs if isinstance(element, tuple) else specs[0]


def features(batch: Any) -> Any:
  """Returns x of a batch that `of` returned."""
  return batch[0] if isinstance(batch, tuple) else batch


def of_fitted(model: Any, batch_size: int,
              tell: Callable[[str], None] = logging.info) -> Any:
  """Returns the specs of the data on which a Keras model was trained last.

  Args:
    model: Model of Keras 3 or tf_keras.
    batch_size: Size of unknown first dimensions.
    tell: See `of`.

  Returns:
    See `of`. None if the model was not trained yet, or knows its own inputs.
  """
  if training_step.knows_inputs(model):
    return None
  found = _element_spec(model)
  return None if found is None else _of_element(found, batch_size, tell)


def labels_of_fitted(model: Any, batch_size: int) -> tuple[Any, ...] | None:
  """Returns the specs of the labels on which a Keras model was trained last.

  Args:
    model: Model of Keras 3 or tf_keras.
    batch_size: Size of first dimensions that the model does not know, whatever
      the training had.

  Returns:
    (y,), or () if the model was trained without labels. None if it was not
    trained yet, does not know its own inputs, or was trained on labels that are
    not dense or whose shape is unknown after the first dimension.
  """
  found = _element_spec(model)
  if found is None or not training_step.knows_inputs(model):
    return None
  labels = found[1:2] if isinstance(found, tuple) else ()
  if not all(
      isinstance(spec, tf.TensorSpec) and spec.shape[1:].is_fully_defined()
      for spec in tf.nest.flatten(labels)):
    return None
  first = tf.nest.flatten(training_step.symbolic_inputs(model, model.name))[0]
  size = training_step.known_shape(first.shape, batch_size)[:1]
  return tf.nest.map_structure(
      lambda spec: tf.TensorSpec([*size, *spec.shape[1:]], spec.dtype), labels)


def _element_spec(model: Any) -> Any:
  """Returns the spec of the batches of a model's `fit`; None before a `fit`."""
  function = getattr(model, 'train_function', None)
  found = None
  for concrete in captures.concrete_functions(
      getattr(function, 'stock', function)).values():
    for argument in tf.nest.flatten(concrete.structured_input_signature):
      if isinstance(argument, tf.data.IteratorSpec):
        found = argument._element_spec
  return found


def _specs(part: Any, batch_size: int) -> Any:
  """Returns specs, with tuples for lists, because a dataset stacks lists."""
  if isinstance(part, dict):
    return {key: _specs(value, batch_size) for key, value in part.items()}
  if isinstance(part, (list, tuple)):
    return tuple(_specs(value, batch_size) for value in part)
  if isinstance(part, tf.TensorSpec):
    return tf.TensorSpec(training_step.known_shape(part.shape, batch_size),
                         part.dtype)
  if not hasattr(part, 'shape') or not hasattr(part, 'dtype'):
    raise errors.InvalidGraphError(
        f'data holds a {type(part).__name__}, which has no shape. Give arrays, '
        'tensors, tf.TensorSpec(shape, dtype), or a tf.data.Dataset.')
  dtype = tf.as_dtype(part.dtype)
  if isinstance(part, np.ndarray) and dtype == tf.float64:
    dtype = tf.float32  # As Keras' `fit` does.
  return tf.TensorSpec(training_step.known_shape(part.shape, batch_size), dtype)
