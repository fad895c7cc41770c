"""Runs graphs of TensorFlow 1 in tests."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

tf1 = tf.compat.v1


def run(build: Callable[[], Any]) -> Any:
  """Returns values of the tensors that `build` makes, in their own graph."""
  with tf.Graph().as_default():
    tensors = build()
    with tf1.Session() as session:
      session.run(tf1.global_variables_initializer())
      return session.run(tensors)
