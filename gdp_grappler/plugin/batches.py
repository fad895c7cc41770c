"""The batch size of graphs that leave it open.

A graph arrives before its first batch. Code that knows the batches announces
their size around the call that makes the graph.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Iterator

# The largest depth of nested datasets that is searched.
_MOST_LAYERS = 100

_lock = threading.Lock()
_assumed: list[int] = []


@contextlib.contextmanager
def assumed(size: int | None) -> Iterator[None]:
  """Prices graphs that arrive in the context for a batch size.

  This holds for all threads, because TensorFlow may make a graph on another
  thread.

  Args:
    size: Size of the first dimension. None changes nothing.
  """
  if size is None:
    yield
    return
  with _lock:
    _assumed.append(size)
  try:
    yield
  finally:
    with _lock:
      last = _assumed[::-1].index(size)
      del _assumed[-1 - last]


def current() -> int | None:
  """Returns the batch size of the latest context; None outside of contexts."""
  with _lock:
    return _assumed[-1] if _assumed else None


def size_of(data: Any) -> int | None:
  """Returns the batch size of data; None if it is not known.

  The function reads no elements of the data.

  Args:
    data: A batch, as any structure of arrays or tensors; a `tf.data.Dataset`
      or its iterator; or an adapter of Keras.
  """
  own = getattr(data, 'batch_size', None)
  if isinstance(own, int):
    return own
  spec = getattr(data, 'element_spec', None)
  size = _leading(data if spec is None else spec)
  dataset = getattr(data, '_dataset', data)
  return _of_pipeline(dataset) if size is None and spec is not None else size


def _leading(structure: Any) -> int | None:
  """Returns the first dimension of the first tensor that is no scalar."""
  from tensorflow import nest
  for part in nest.flatten(structure):
    shape = getattr(part, 'shape', None)
    if shape is None:
      continue
    # The length of a `TensorShape` of unknown rank is an error.
    if (shape.rank if hasattr(shape, 'rank') else len(shape)) in (None, 0):
      continue
    return shape[0]
  return None


def _of_pipeline(dataset: Any) -> int | None:
  """Returns the constant size in the last `batch` of a dataset, or None."""
  from tensorflow.python.framework import tensor_util
  for _ in range(_MOST_LAYERS):
    size = getattr(dataset, '_batch_size', None)
    if size is not None:
      value = tensor_util.constant_value(size)
      return None if value is None else int(value)
    dataset = getattr(dataset, '_input_dataset', None)
    if dataset is None:
      return None
  return None
