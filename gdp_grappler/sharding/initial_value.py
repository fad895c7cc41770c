"""The initial values of parts: slices of the initial value of the whole."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np


class InitialValue:
  """The initial value of a whole weight, of which each part gets a slice.

  The value is drawn once, in the host's memory, and kept until each part has
  its slice. But in the tracing of a graph each part draws the whole value.
  """

  def __init__(self, initializer: Callable[..., Any], shape: Sequence[int],
               axis: int, sizes: Sequence[int]) -> None:
    """Stores the arguments. The value is drawn for the first part.

    Args:
      initializer: Initializer of the whole weight.
      shape: Shape of the whole weight.
      axis: Axis along which the weight is split.
      sizes: [K], sizes of the parts along the axis.
    """
    self._initializer = initializer
    self._shape, self._axis = tuple(shape), axis
    self._firsts = np.cumsum((0, *sizes))
    self._drawn: Any = None
    self._waiting: set[int] = set()

  def part(self, index: int, shape: Sequence[int], dtype: Any = None) -> Any:
    """Returns the initial value of a part."""
    import tensorflow as tf
    with tf.device('CPU:0'):
      if self._drawn is None:
        self._drawn = self._initializer(self._shape, dtype=dtype)
        self._waiting = set(range(len(self._firsts) - 1))
      first = [0] * len(self._shape)
      first[self._axis] = int(self._firsts[index])
      result = tf.slice(self._drawn, first, list(shape))
    self._waiting.discard(index)
    if not self._waiting or not tf.executing_eagerly():
      self._drawn = None
    return result
