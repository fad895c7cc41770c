"""Switches tracing off, for tests that call functions only a few times."""

from __future__ import annotations

import contextlib
from typing import Iterator

import tensorflow as tf


@contextlib.contextmanager
def functions() -> Iterator[None]:
  """Makes each `tf.function` run op by op while the context lasts.

  Tracing a network takes as long as dozens of eager calls.
  """
  before = tf.config.functions_run_eagerly()
  tf.config.run_functions_eagerly(True)
  try:
    yield
  finally:
    tf.config.run_functions_eagerly(before)
