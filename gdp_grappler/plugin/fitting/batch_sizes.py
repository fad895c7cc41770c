"""The size of the batches that Keras is about to pass to its functions.

Keras passes iterators, which do not always know the size, because the last
batch of an array may be smaller. The source of the iterator knows the size.
"""

from __future__ import annotations

import functools
from typing import Any
import weakref

from gdp_grappler import method_wrapping
from gdp_grappler.plugin import batches

# Objects that Keras 3 or tf_keras makes at the beginning of a call: module,
# class, and the attributes with the adapter and with its dataset.
_FEEDS = (('keras.src.backend.tensorflow.trainer', 'TFEpochIterator',
           'data_adapter', '_distributed_dataset'),
          ('tf_keras.src.engine.data_adapter', 'DataHandler', '_adapter',
           '_dataset'))
# Attributes in which adapters keep the size, public or private ones.
_SIZES = ('_batch_size', '_first_batch_size')
# The size of the batches of each dataset that Keras has made.
_dataset_sizes: weakref.WeakKeyDictionary[Any, int | None] = (
    weakref.WeakKeyDictionary())


def watch() -> None:
  """Records the batch size of data that Keras gets from now on."""
  import wrapt
  for module, *names in _FEEDS:
    wrapt.register_post_import_hook(functools.partial(_wrap, *names), module)


def size_of(data: Any) -> int | None:
  """Returns the size of batches; None if unknown.

  Args:
    data: The argument of a function of Keras. An iterator without a size has
      the size of its dataset.
  """
  import tensorflow as tf
  size, dataset = batches.size_of(data), getattr(data, '_dataset', None)
  if size is None and isinstance(dataset, tf.data.Dataset):
    return _dataset_sizes.get(dataset)
  return size


def _wrap(name: str, adapter: str, dataset: str, module: Any) -> None:
  import tensorflow as tf

  def init(stock: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    stock(self, *args, **kwargs)
    made = getattr(self, dataset, None)
    if isinstance(made, tf.data.Dataset):
      _dataset_sizes[made] = _of_adapter(getattr(self, adapter))

  method_wrapping.wrap(getattr(module, name), '__init__', init)


def _of_adapter(adapter: Any) -> int | None:
  for name in _SIZES:
    size = getattr(adapter, name, None)
    if isinstance(size, int):
      return size
  return batches.size_of(getattr(adapter, '_dataset', None))
