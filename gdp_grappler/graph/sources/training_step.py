"""One training step of a Keras model, ready to be traced.

Speaks to the model only through what `fit` itself uses, so it serves Keras 3
and tf_keras models alike and imports neither.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import tensorflow as tf

from gdp_grappler import environment
from gdp_grappler import errors

# For inputs whose other dimensions are unknown, such as the length of a
# sequence.
UNKNOWN_DIMENSION = 64
_LARGEST_DIMENSION = 2**31 - 1  # Shapes are made of 32 bits.
# Loss for the activation of an output layer.
_LOSSES = {
    'softmax': 'sparse_categorical_crossentropy',
    'sigmoid': 'binary_crossentropy'
}


def known_shape(shape: Any, batch_size: int) -> list[int]:
  """`shape` without unknown dimensions.

  Raises:
    InvalidGraphError: not even the number of dimensions is known, or one is too
      large.
  """
  dims = list(
      tf.TensorShape(shape)) if tf.TensorShape(shape).rank is not None else None
  if dims is None:
    raise errors.InvalidGraphError(
        'An input has a shape without a known number of dimensions. Give it '
        f'one, or capture the graph with {environment.CAPTURE_DIR}.')
  known = [
      d if d is not None else batch_size if not i else UNKNOWN_DIMENSION
      for i, d in enumerate(dims)
  ]
  if max(known, default=0) > _LARGEST_DIMENSION:
    raise errors.InvalidGraphError(
        f'An input would have the shape {known}: TensorFlow makes no tensor '
        f'with a dimension beyond {_LARGEST_DIMENSION:,}. Take a smaller '
        'batch_size.')
  return known


def empty_step(model: Any, origin: str, batch_size: int, note: Callable[[str],
                                                                        None],
               batch: tuple[Any, ...] | None = None) -> functools.partial[Any]:
  """What to call to have the model's train function optimized, not run.

  Compiles a model that is not compiled. XLA is switched off: it would hide
  the step in one op.

  Args:
    model: Whatever the user's function returned.
    origin: Where it came from, for messages.
    batch_size: For unknown first dimensions.
    note: Hears what was assumed.
    batch: Specs of one batch of a compiled model, of `batch_specs`; None for
      what the model knows of its inputs, and what fits its losses.

  Raises:
    InvalidGraphError: no Keras model, or one whose inputs are not known.
  """
  if not callable(getattr(model, 'make_train_function', None)):
    raise errors.InvalidGraphError(
        f'{origin} returned {type(model).__name__}, which is not a Keras '
        'model. Return a keras.Model.')
  if batch is None:
    inputs = symbolic_inputs(model, origin)
    features = tf.nest.map_structure(
        lambda t: tf.TensorSpec(known_shape(t.shape, batch_size), t.dtype),
        inputs)
    _note_unknown(inputs, batch_size, note)
    if getattr(model, 'optimizer', None) is None:
      _compile(model, note)
    batch = (features,) + _targets(model, batch_size)
  model.jit_compile = False
  model.run_eagerly = False
  iterator = iter(_no_batches(batch))
  model.make_train_function()
  return functools.partial(model.train_function, iterator)


def symbolic_inputs(model: Any, origin: str) -> Any:
  """The model's symbolic inputs: one, a tuple or a dict of them.

  Raises:
    InvalidGraphError: it does not know them.
  """
  structure = _inputs(model)
  if structure is not None:
    return structure
  raise errors.InvalidGraphError(
      f'{origin}: the model does not know its inputs. Start it with '
      'keras.Input, give one batch (in Python: data=(x, y)), or capture its '
      f'graph with {environment.CAPTURE_DIR} in your own program.')


def knows_inputs(model: Any) -> bool:
  """Whether a model has symbolic inputs."""
  return _inputs(model) is not None


def _inputs(model: Any) -> Any:
  for attribute in ('_inputs_struct', '_nested_inputs', 'inputs'):
    try:
      structure = getattr(model, attribute, None)
    except ValueError:  # A Sequential that is not built.
      continue
    if isinstance(structure, (list, tuple)) and structure:
      return structure[0] if len(structure) == 1 else tuple(structure)
    if structure is not None and tf.nest.flatten(structure):
      return structure
  return None


def _note_unknown(inputs: Any, batch_size: int, note: Callable[[str],
                                                               None]) -> None:
  shapes = [tuple(t.shape) for t in tf.nest.flatten(inputs)]
  if any(s and s[0] is None for s in shapes):
    note(f'batches of {batch_size}')
  if any(None in s[1:] for s in shapes):
    note(f'unknown dimensions of inputs taken as {UNKNOWN_DIMENSION}')


def _compile(model: Any, note: Callable[[str], None]) -> None:
  losses = [
      _LOSSES.get(_activation(tensor), 'mean_squared_error')
      for tensor in model.outputs
  ]
  model.compile('adam', losses if len(losses) > 1 else losses[0],
                jit_compile=False)
  note(f'the model is not compiled: taking Adam and {", ".join(losses)}')


def _activation(tensor: tf.Tensor) -> str:
  """Name of the activation of the layer behind an output."""
  history = getattr(tensor, '_keras_history', None)
  layer = history[0] if history else None
  return getattr(getattr(layer, 'activation', None), '__name__', '')


def _targets(model: Any, batch_size: int) -> tuple[Any, ...]:
  """(), or the specs of the labels that the losses ask for."""
  losses = model.loss
  if not losses:
    return ()
  names = list(getattr(model, 'output_names', []))
  outputs = model.outputs
  if isinstance(losses, dict):
    return ({
        name: _target(losses[name], output, batch_size)
        for name, output in zip(names, outputs) if name in losses
    },)
  if not isinstance(losses, (list, tuple)):
    losses = [losses] * len(outputs)
  specs = tuple(
      _target(loss, output, batch_size)
      for loss, output in zip(losses, outputs))
  return (specs[0] if len(specs) == 1 else specs,)


def _target(loss: Any, output: tf.Tensor, batch_size: int) -> tf.TensorSpec:
  """Class numbers for a sparse loss, else the like of the output."""
  shape = known_shape(output.shape, batch_size)
  label = loss if isinstance(loss, str) else getattr(loss, '__name__',
                                                     type(loss).__name__)
  if 'sparse' in label.lower():
    return tf.TensorSpec(shape[:-1], tf.int64)
  return tf.TensorSpec(shape, tf.float32)


def _no_batches(specs: tuple[Any, ...]) -> tf.data.Dataset:
  """A data set with these elements, of which it has none."""

  def element(_: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), specs)

  return tf.data.Dataset.range(0).map(element)
