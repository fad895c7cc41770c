"""Decides in how many parts a layer's weight is made."""

from __future__ import annotations

from typing import Any, Callable, Sequence
import warnings

from gdp_grappler import errors
from gdp_grappler.sharding import deciding

# Regularizers that are sums over elements: the sum over all parts is the same.
_SUMMED = ('L1', 'L2', 'L1L2')
# Constraints that look at each element by itself.
_BY_ELEMENT = ('NonNeg',)

# Shape of a table, wanted number of parts -> rows or columns of each part.
Sizes = Callable[[Sequence[int], int], tuple[int, ...]]


def parts(layer: Any, how: dict[str, Any], knows_parts: dict[str, bool],
          sizes: Sizes) -> int:
  """Returns the wanted number of parts of a layer's weight; 1 for a whole one.

  Args:
    layer: A layer of Keras 3 or tf_keras.
    how: Arguments of the layer's `add_weight`, by name.
    knows_parts: By the name of a method of the layer, whether the method can
      compute with parts.
    sizes: Divides the weight, see `Sizes`.

  Raises:
    GdpError: a scope of the user wants parts, but the weight has to be whole.
  """
  try:
    return _parts(layer, how, knows_parts, sizes)
  except errors.GdpError:
    raise
  except Exception as error:
    warnings.warn(
        f'A table of {type(layer).__name__} is made whole: the choice of its '
        f'parts failed with {type(error).__name__}: {error}. Please report it.',
        stacklevel=2)
    return 1


def _parts(layer: Any, how: dict[str, Any], knows_parts: dict[str, bool],
           sizes: Sizes) -> int:
  import tensorflow as tf
  # Layers of TensorFlow 1 take the type of their first input.
  dtype = tf.as_dtype(how.get('dtype') or layer.variable_dtype or 'float32')
  shape = tuple(map(int, how['shape']))
  count = deciding.parts(layer.name, shape, dtype.size,
                         _whole_because(layer, how, knows_parts),
                         f'{_scopes(layer)}/{how["name"]}',
                         lambda count: len(sizes(shape, count)))
  return max(count, 1)


def _scopes(layer: Any) -> str:
  """Returns the layer's name with the scopes around it, if they are known."""
  path = getattr(layer, 'path', None)
  return path if isinstance(path, str) and path else str(layer.name)


def _whole_because(layer: Any, how: dict[str, Any],
                   knows_parts: dict[str, bool]) -> str:
  """Returns why a weight has to be whole; '' if it may be in parts."""
  import tensorflow as tf
  if not tf.compat.v1.executing_eagerly_outside_functions():
    return 'graphs of TensorFlow 1 take it for one variable'
  for method, is_known in knows_parts.items():
    if not is_known:
      return (f'{type(layer).__name__} has its own `{method}`, which needs '
              'the whole table')
  regularizer, constraint = how.get('regularizer'), how.get('constraint')
  if regularizer is not None and type(regularizer).__name__ not in _SUMMED:
    return (f'its regularizer {type(regularizer).__name__} may look at the '
            'whole table')
  if constraint is not None and type(constraint).__name__ not in _BY_ELEMENT:
    return (f'its constraint {type(constraint).__name__} may look at the whole '
            'table')
  if tf.distribute.has_strategy():
    return 'a tf.distribute strategy says where its variables are'
  return ''
