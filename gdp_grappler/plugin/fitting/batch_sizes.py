"""The size of the batches that Keras is about to pass to its functions.

Keras passes iterators, which do not always know the size, because the last
batch of an array may be smaller. The source of the iterator knows the size.
"""

from __future__ import annotations

import functools
import threading
from typing import Any

from gdp_grappler import method_wrapping
from gdp_grappler.plugin import batches

# Objects that Keras 3 or tf_keras makes at the beginning of a call: module,
# class, and the attribute with the data.
_FEEDS = (('keras.src.trainers.epoch_iterator', 'EpochIterator',
           'data_adapter'), ('tf_keras.src.engine.data_adapter', 'DataHandler',
                             '_adapter'))
# Attributes in which adapters keep the size; some of them do not publish it.
_SIZES = ('_batch_size', '_first_batch_size')


class _Local(threading.local):
  size: int | None = None


_local = _Local()


def watch() -> None:
  """Records the batch size of data that Keras gets from now on."""
  import wrapt
  for module, name, attribute in _FEEDS:
    wrapt.register_post_import_hook(functools.partial(_wrap, name, attribute),
                                    module)


def size_of(data: Any) -> int | None:
  """Returns the size of batches; None if unknown.

  Args:
    data: The argument of a function of Keras. For an iterator without a size,
      the data that this thread has last given to Keras count.
  """
  import tensorflow as tf
  size = batches.size_of(data)
  return _local.size if size is None and isinstance(data,
                                                    tf.data.Iterator) else size


def _wrap(name: str, attribute: str, module: Any) -> None:

  def init(stock: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    stock(self, *args, **kwargs)
    _local.size = _of_adapter(getattr(self, attribute))

  method_wrapping.wrap(getattr(module, name), '__init__', init)


def _of_adapter(adapter: Any) -> int | None:
  for name in _SIZES:
    size = getattr(adapter, name, None)
    if isinstance(size, int):
      return size
  return batches.size_of(getattr(adapter, '_dataset', None))
