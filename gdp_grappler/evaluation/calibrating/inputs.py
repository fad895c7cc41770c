"""Inputs of the ops of the suite: variables on the device, and constants.

The data are drawn once, when the variables are initialized, and read in every
step.
"""

from __future__ import annotations

import collections
import contextlib
import types
from typing import Any, Iterator, Sequence


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

  def __init__(self, tf: types.ModuleType, on_gpu: bool) -> None:
    """Begins without tensors.

    Args:
      tf: TensorFlow.
      on_gpu: Whether the ops run on a GPU.
    """
    self.ops = tf.raw_ops
    self.data_format = 'NCHW' if on_gpu else 'NHWC'
    self._tf = tf
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
    result = self._tf.compat.v1.Variable(
        lambda: self._tf.raw_ops.RandomUniform(shape=self.shape(
            shape), dtype=self._tf.float32), use_resource=True, trainable=False)
    self.variables.append(result)
    return result

  @contextlib.contextmanager
  def on(self, device: str) -> Iterator[None]:
    """A context for a device, whose tensors other devices do not share."""
    before, self._place = self._place, device
    with self._tf.device(device):
      yield
    self._place = before

  def after(self, made: Sequence[Any]) -> Any:
    """A context whose ops wait for the given ops."""
    return self._tf.control_dependencies(made)

  def rows(self, count: int, most: int) -> Any:
    """int32 [count] from 0 to most - 1, on the device."""
    scaled = self.floats(count) * self._tf.constant(float(most))
    limit = self._tf.constant(float(most - 1))
    return self._tf.cast(self._tf.minimum(scaled, limit), self._tf.int32)

  def filled(self, value: int, count: int) -> Any:
    """int32 [count], on the host."""
    return self._tf.constant([value] * count, self._tf.int32)

  def shape(self, dims: Sequence[int]) -> Any:
    """int32 [R], on the host."""
    return self._tf.constant(list(dims), self._tf.int32)

  def scalar(self, value: int) -> Any:
    """int32 [], on the host."""
    return self._tf.constant(value, self._tf.int32)

  def constant(self, value: float) -> Any:
    """float32 []."""
    return self._tf.constant(value, self._tf.float32)

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
  def zero(self) -> Any:
    """int32 0."""
    return self.scalar(0)

  @property
  def one(self) -> Any:
    """int32 1."""
    return self.scalar(1)

  @property
  def none(self) -> Any:
    """float32 [0]."""
    return self._tf.constant([], self._tf.float32)

  @property
  def half(self) -> Any:
    """The float type of 16 bits for which all devices have kernels."""
    return self._tf.float16

  @property
  def float(self) -> Any:
    """float32."""
    return self._tf.float32
