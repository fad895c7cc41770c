"""One training step of a Keras model, ready to be traced.

Only attributes and methods that `fit` itself uses are accessed. So this module
supports models of Keras 3 and of tf_keras, and imports neither.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

import tensorflow as tf

from gdp_grappler import environment
from gdp_grappler import errors

# Size of unknown dimensions after the first, such as the length of a sequence.
UNKNOWN_DIMENSION = 64
# Note about inputs of which `is_dense` is false.
AS_DENSE = 'sparse and ragged inputs traced as dense tensors of the same shape'
# Errors of a loss that does not take the labels it gets. Others, such as a
# timeout, may be those of a signal handler.
_REJECTS = (AssertionError, AttributeError, LookupError, RuntimeError,
            TypeError, ValueError, tf.errors.OpError)
_KERAS = ('keras', 'tf_keras')
_LARGEST_DIMENSION = 2**31 - 1  # Dimensions are 32-bit integers.
# Loss for each activation of an output layer.
_LOSSES = {
    'softmax': 'sparse_categorical_crossentropy',
    'sigmoid': 'binary_crossentropy'
}


def known_shape(shape: Any, batch_size: int) -> list[int]:
  """Returns a shape with sizes for its unknown dimensions.

  Raises:
    InvalidGraphError: the number of dimensions is unknown, or one is too large.
  """
  dims = tf.TensorShape(shape)
  if dims.rank is None:
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


def is_dense(tensor: Any) -> bool:
  """Whether a tensor, an array, a spec or an input of a model is dense."""
  spec = getattr(tensor, '_type_spec', tensor)
  return not (isinstance(spec, (tf.SparseTensorSpec, tf.RaggedTensorSpec)) or
              getattr(tensor, 'sparse', False) or
              getattr(tensor, 'ragged', False) or hasattr(tensor, 'tocoo'))


def empty_step(model: Any, origin: str, batch_size: int,
               note: Callable[[str], None], batch: Any = None,
               labels: tuple[Any, ...] | None = None) -> functools.partial[Any]:
  """Returns a call that makes TensorFlow optimize a step, but computes none.

  The call runs the model's train function on a data set without elements. A
  model that is not compiled is compiled. XLA is switched off, because it would
  hide the step in one op.

  Args:
    model: Object that the user's function returned.
    origin: Name of the function, for messages.
    batch_size: Size of unknown first dimensions.
    note: Function that is called with a line for each assumption.
    batch: Specs of one batch of a compiled model (`batch_specs`). None means
      that inputs are taken from the model.
    labels: (y,) or () with specs, if `batch` is None. None means that labels
      are guessed from the losses.

  Raises:
    InvalidGraphError: the object is not a Keras model, or its inputs are
      unknown.
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
    note_unknown(inputs, batch_size, note)
    if getattr(model, 'optimizer', None) is None:
      _compile(model, note)
    if labels is None:
      labels = _targets(model, batch_size, note)
    if not labels:
      note('the model is compiled without a loss: taking batches without '
           'labels')
    # `fit` puts x alone in a tuple only if x is several tensors.
    alone = not labels and not isinstance(features, tuple)
    batch = features if alone else (features,) + labels
  model.jit_compile = False
  model.run_eagerly = False
  iterator = iter(_no_batches(batch))
  model.make_train_function()
  return functools.partial(model.train_function, iterator)


def symbolic_inputs(model: Any, origin: str) -> Any:
  """Returns the model's symbolic inputs: one, a tuple or a dict of them.

  Raises:
    InvalidGraphError: the model does not know its inputs.
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
    except ValueError:  # A Sequential model that is not built.
      continue
    if isinstance(structure, (list, tuple)) and structure:
      return structure[0] if len(structure) == 1 else tuple(structure)
    if structure is not None and tf.nest.flatten(structure):
      return structure
  return None


def note_unknown(inputs: Any, batch_size: int, note: Callable[[str],
                                                              None]) -> None:
  """Says which sizes the specs of inputs got from `known_shape`."""
  shapes = [tuple(t.shape) for t in tf.nest.flatten(inputs)]
  if any(s and s[0] is None for s in shapes):
    note(f'batches of {batch_size}')
  if any(None in s[1:] for s in shapes):
    note(f'unknown dimensions of inputs taken as {UNKNOWN_DIMENSION}')
  if not all(map(is_dense, tf.nest.flatten(inputs))):
    note(AS_DENSE)


def _compile(model: Any, note: Callable[[str], None]) -> None:
  losses = [
      _LOSSES.get(_activation(tensor), 'mean_squared_error')
      for tensor in model.outputs
  ]
  model.compile('adam', losses if len(losses) > 1 else losses[0],
                jit_compile=False)
  note(f'the model is not compiled: taking Adam and {", ".join(losses)}')


def _activation(tensor: tf.Tensor) -> str:
  """Returns the name of the activation of the layer that made an output."""
  history = getattr(tensor, '_keras_history', None)
  layer = history[0] if history else None
  return getattr(getattr(layer, 'activation', None), '__name__', '')


def _targets(model: Any, batch_size: int,
             note: Callable[[str], None]) -> tuple[Any, ...]:
  """Returns specs of the labels that the losses need, or ()."""
  losses = model.loss
  if not losses:
    return ()
  outputs = model.outputs
  if isinstance(losses, dict):
    named = dict(zip(getattr(model, 'output_names', []), outputs))
    structure = getattr(model, 'output', None)
    if isinstance(structure, dict):  # Its layers may have other names.
      named.update(structure)
    return ({
        name: _target(model, losses[name], output, batch_size, note)
        for name, output in named.items() if name in losses
    },)
  if not isinstance(losses, (list, tuple)):
    losses = [losses] * len(outputs)
  specs = tuple(
      _target(model, loss, output, batch_size, note)
      for loss, output in zip(losses, outputs))
  return (specs[0] if len(specs) == 1 else specs,)


def _target(model: Any, loss: Any, output: tf.Tensor, batch_size: int,
            note: Callable[[str], None]) -> tf.TensorSpec:
  """Returns the spec of labels: like the output, or classes for some losses."""
  shape = known_shape(output.shape, batch_size)
  label = loss if isinstance(loss, str) else getattr(loss, '__name__',
                                                     type(loss).__name__)
  like_output = tf.TensorSpec(shape, tf.float32)
  classes = tf.TensorSpec(shape[:-1], tf.int64)
  if 'sparse' in label.lower():
    return classes
  # A loss that takes neither fails in the step, where the error is reported.
  if (loss is None or _takes(model, loss, like_output, like_output) or
      not _takes(model, loss, classes, like_output)):
    return like_output
  note(f'labels taken as classes, because {label} does not take labels with '
       'the shape of the output')
  return classes


def _takes(model: Any, loss: Any, labels: tf.TensorSpec,
           outputs: tf.TensorSpec) -> bool:
  """Whether a loss of a model can be traced with labels and outputs."""
  try:
    loss = _made(model, loss)
    # The `call` of a Keras loss does not reduce the losses of a batch. In the
    # scope of a strategy, some reductions fail outside of the train function.
    compute = getattr(loss, 'call', loss)
    traced = tf.function(lambda labels, outputs: compute(labels, outputs))
    traced.get_concrete_function(labels, outputs)
  except Exception as error:
    # AutoGraph raises some errors as an error of its own, while it handles
    # them.
    if not any(isinstance(e, _REJECTS) for e in (error, error.__context__)):
      raise
    return False
  return True


def _made(model: Any, loss: Any) -> Any:
  """Returns the loss that a model's Keras makes of a name or a class."""
  for base in type(model).__mro__:
    library = base.__module__.partition('.')[0]
    if library in _KERAS:
      return sys.modules[library].losses.get(loss)
  return loss


def _no_batches(specs: Any) -> tf.data.Dataset:
  """Returns a data set with these specs, but without elements."""

  def element(_: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), specs)

  return tf.data.Dataset.range(0).map(element)
