"""Inputs of the ops of the suite: variables on the device, and constants.

The data are drawn once, when the variables are initialized, and read in every
step.
"""

from __future__ import annotations

import collections
import contextlib
from typing import Any, Iterator, Sequence

import tensorflow as tf


class Inputs:
  """Makes tensors in the current graph, on the current device.

  Each call for one op gives another tensor, because the second reader of a
  tensor would find it in the caches. Ops of different sizes share tensors,
  because memory is limited.

  Attributes:
    ops: `tf.raw_ops`.
    data_format: Format of images: 'NCHW' on GPUs, because TensorFlow converts
      to it.
    variables: All variables, which the caller has to initialize.
  """

  def __init__(self, on_gpu: bool) -> None:
    """Begins without tensors.

    Args:
      on_gpu: Whether the ops run on a GPU.
    """
    self.ops = tf.raw_ops
    self.data_format = 'NCHW' if on_gpu else 'NHWC'
    self._known: dict[tuple[Any, ...], Any] = {}
    self._count: collections.Counter[tuple[Any, ...]] = collections.Counter()
    self._place = ''
    self.variables: list[Any] = []

  def begin(self) -> None:
    """Begins an op of another size, which may share tensors."""
    self._count.clear()

  def floats(self, *shape: int) -> Any:
    """Numbers from 0 to 1, float32."""
    self._count[shape] += 1
    key = (self._place, *shape, self._count[shape])
    if key not in self._known:
      self._known[key] = self.variable(*shape).read_value()
    return self._known[key]

  def variable(self, *shape: int) -> Any:
    """A new variable, which ops may change."""
    result = tf.compat.v1.Variable(
        lambda: tf.raw_ops.RandomUniform(shape=self.ints(
            shape), dtype=tf.float32), use_resource=True, trainable=False)
    self.variables.append(result)
    return result

  @contextlib.contextmanager
  def on(self, device: str) -> Iterator[None]:
    """A context for a device, whose tensors other devices do not share."""
    before, self._place = self._place, device
    with tf.device(device):
      yield
    self._place = before

  def rows(self, count: int, most: int) -> Any:
    """int32 [count] from 0 to most - 1, on the device."""
    scaled = self.floats(count) * tf.constant(float(most))
    limit = tf.constant(float(most - 1))
    return tf.cast(tf.minimum(scaled, limit), tf.int32)

  def ints(self, values: int | Sequence[int]) -> Any:
    """int32 [] or [R], on the host."""
    return tf.constant(values, tf.int32)

  def constant(self, value: float) -> Any:
    """float32 []."""
    return tf.constant(value, tf.float32)

  def image(self, batch: int, side: int, channels: int) -> tuple[int, ...]:
    """Shape of square images in `data_format`."""
    if self.data_format == 'NCHW':
      return batch, channels, side, side
    return batch, side, side, channels

  def strides(self, stride: int) -> list[int]:
    """Strides of a window over images in `data_format`."""
    if self.data_format == 'NCHW':
      return [1, 1, stride, stride]
    return [1, stride, stride, 1]

  @property
  def none(self) -> Any:
    """float32 [0]."""
    return tf.constant([], tf.float32)
