"""Passes the batches of a call that was cancelled to a second call."""

from __future__ import annotations

import itertools
from typing import Any, Iterator

import tensorflow as tf

from gdp_grappler.plugin.fitting import single_steps


class Replay:
  """An iterator whose batches can be read again from the first one.

  Only batches of a Python iterator have to be kept. A function that is
  cancelled takes no batch from an iterator of `tf.data`, and `Batches` keep the
  batch of a step that was cancelled.
  """

  def __init__(self, iterator: Any) -> None:
    """Reads no batch yet.

    Args:
      iterator: An iterator of `tf.data`, of a distribution strategy or of
        Python; or `single_steps.Batches`.
    """
    self._iterator = iterator
    self._keeps_batches = isinstance(
        iterator, (tf.data.Iterator, tf.distribute.DistributedIterator,
                   single_steps.Batches))
    self._taken: list[Any] = []

  def first(self) -> Any:
    """Returns the iterator for the call that may be cancelled."""
    return self._iterator if self._keeps_batches else self._keep()

  def again(self) -> Any:
    """Returns the iterator for the second call."""
    if self._keeps_batches:
      return self._iterator
    return itertools.chain(self._taken, self._iterator)

  def _keep(self) -> Iterator[Any]:
    for batch in self._iterator:
      self._taken.append(batch)
      yield batch
