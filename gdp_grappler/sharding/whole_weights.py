"""Functions for both Keras 3 and tf_keras that treat a table as one weight."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Sequence
import warnings

from gdp_grappler import method_wrapping

# Function from variables to weights, with one weight for the parts of a table.
Joined = Callable[[Iterable[Any]], list[Any]]


def assign(layer: str, weights: Sequence[Any], values: Sequence[Any]) -> None:
  """Assigns values to weights, as `set_weights` does.

  Args:
    layer: Name of the layer, for messages.
    weights: [W], whole variables or tables.
    values: [W], arrays of the shapes of the weights.

  Raises:
    ValueError: the number of values or a shape differs.
  """
  if len(weights) != len(values):
    raise ValueError(f'Layer "{layer}" has {len(weights)} weights, and was '
                     f'given {len(values)}.')
  for weight, value in zip(weights, values):
    if tuple(weight.shape) != tuple(value.shape):
      raise ValueError(
          f'Layer "{layer}": weight "{weight.name}" has the shape '
          f'{tuple(weight.shape)}, and was given {tuple(value.shape)}.')
    weight.assign(value)


def wrap_weights(has_parts: Callable[[Iterable[Any]], bool], joined: Joined,
                 cls: Any) -> None:
  """Makes `get_weights` and `set_weights` treat each table as one weight.

  Args:
    has_parts: Whether any of the given variables is a part of a table.
    joined: Function that joins the parts of tables.
    cls: Class of all layers.
  """

  def get_weights(stock: Any, self: Any) -> list[Any]:
    if not has_parts(self.weights):
      result: list[Any] = stock(self)
      return result
    return [weight.numpy() for weight in joined(self.weights)]

  def set_weights(stock: Any, self: Any, weights: Any) -> None:
    if has_parts(self.weights):
      assign(self.name, joined(self.weights), weights)
    else:
      stock(self, weights)

  method_wrapping.wrap(cls, 'get_weights', get_weights)
  method_wrapping.wrap(cls, 'set_weights', set_weights)


def wrap_h5(joined: Joined, module: Any) -> None:
  """Makes Keras write each table as a whole into files of the HDF5 format.

  Args:
    joined: Function that joins the parts of tables.
    module: Keras' module of the old HDF5 format.
  """

  def weights(stock: Any, layer: Any) -> list[Any]:
    return joined(stock(layer))

  method_wrapping.wrap(module, '_legacy_weights', weights)


def warn_of(optimizer: Any, whole: Iterable[str]) -> None:
  """Warns if an optimizer updates parts differently from a whole table.

  Args:
    optimizer: An optimizer of Keras 3 or tf_keras.
    whole: Names of optimizers whose update of an element depends on the whole
      variable.
  """
  if optimizer.clipnorm:
    what = 'clipnorm, which looks at the norm of a whole gradient'
  elif type(optimizer).__name__ in whole:
    what = f'{type(optimizer).__name__}, which looks at whole variables'
  else:
    return
  warnings.warn(
      f'The model has tables in parts and is trained by {what}: each part is '
      'taken for a variable of its own, so numbers differ from those of the '
      'whole table. Adam, SGD, Adagrad and RMSprop update element by element.',
      stacklevel=2)
