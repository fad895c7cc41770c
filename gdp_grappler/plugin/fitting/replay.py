"""Batches that are given a second time, to a call that was cancelled."""

from __future__ import annotations

import itertools
from typing import Any, Iterator

import tensorflow as tf


class Replay:
  """The batches of an iterator, from the first one again.

  Only those of Python have to be kept: a function that is cancelled takes none
  from an iterator of `tf.data`.
  """

  def __init__(self, iterator: Any) -> None:
    """Takes nothing yet.

    Args:
      iterator: Of `tf.data`, of a distribution strategy or of Python.
    """
    self._iterator = iterator
    self._in_graph = isinstance(
        iterator, (tf.data.Iterator, tf.distribute.DistributedIterator))
    self._taken: list[Any] = []

  def first(self) -> Any:
    """The iterator for the call that may be cancelled."""
    return self._iterator if self._in_graph else self._keep()

  def again(self) -> Any:
    """The iterator for the call that takes its place."""
    if self._in_graph:
      return self._iterator
    return itertools.chain(self._taken, self._iterator)

  def _keep(self) -> Iterator[Any]:
    for batch in self._iterator:
      self._taken.append(batch)
      yield batch
