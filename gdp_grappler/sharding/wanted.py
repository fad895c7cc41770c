"""In how many parts a layer's weight is made, or why it stays whole."""

from __future__ import annotations

from typing import Any

from gdp_grappler.sharding import deciding

# Regularizers that are sums over elements: the sum over all parts is the same.
_SUMMED = ('L1', 'L2', 'L1L2')
# Constraints that look at each element by itself.
_BY_ELEMENT = ('NonNeg',)


def parts(layer: Any, how: dict[str, Any], knows_parts: bool) -> int:
  """In how many parts the weight of a layer is made; 1 for the whole.

  Args:
    layer: Of Keras 3 or tf_keras.
    how: What the layer gave to `add_weight`.
    knows_parts: Whether the layer's `call` is one that computes with parts.

  Raises:
    GdpError: a scope of the user wants parts, and the weight has to be whole.
  """
  import tensorflow as tf
  dtype = tf.as_dtype(how.get('dtype') or layer.variable_dtype)
  count = deciding.parts(layer.name, tuple(map(int, how['shape'])), dtype.size,
                         _whole_because(layer, how, knows_parts))
  return max(count, 1)


def _whole_because(layer: Any, how: dict[str, Any], knows_parts: bool) -> str:
  """Why a weight cannot be in parts; '' if it can."""
  import tensorflow as tf
  if not knows_parts:
    return (f'{type(layer).__name__} has a `call` of its own, which reads the '
            'whole table')
  regularizer, constraint = how.get('regularizer'), how.get('constraint')
  if regularizer is not None and type(regularizer).__name__ not in _SUMMED:
    return (f'its regularizer {type(regularizer).__name__} may look at the '
            'whole table')
  if constraint is not None and type(constraint).__name__ not in _BY_ELEMENT:
    return (f'its constraint {type(constraint).__name__} may look at the whole '
            'table')
  if tf.distribute.has_strategy():
    return 'a tf.distribute strategy says where its variables are'
  if not tf.compat.v1.executing_eagerly_outside_functions():
    return 'graphs of TensorFlow 1 take it for one variable'
  return ''
