"""Strategies of tf.distribute that leave no trace in the process."""

from __future__ import annotations

import contextlib
from typing import Callable, Iterator

import tensorflow as tf
from tensorflow.python.distribute import distribute_lib


@contextlib.contextmanager
def one_device(device: str) -> Iterator[tf.distribute.Strategy]:
  """Makes a strategy. TensorFlow's gauge forgets it after the context."""
  with made(lambda: tf.distribute.OneDeviceStrategy(device)) as strategy:
    yield strategy


@contextlib.contextmanager
def made(
    make: Callable[[],
                   tf.distribute.Strategy]) -> Iterator[tf.distribute.Strategy]:
  """Calls `make`. TensorFlow's gauge forgets the strategy after the context."""
  cell = distribute_lib.distribution_strategy_gauge.get_cell('V2')
  before = cell.value()
  try:
    yield make()
  finally:
    cell.set(before)
