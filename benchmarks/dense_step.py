"""A training step of dense layers, of any size."""

from __future__ import annotations

from typing import Callable

import tensorflow as tf

UNITS = 8  # Width of a layer. Small, so that kernels take little time.


def make(num_layers: int) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns a `tf.function` with gradient descent, 12 ops per layer.

  Args:
    num_layers: Number of layers. The input has `UNITS` columns.
  """
  weights = [tf.Variable(tf.eye(UNITS)) for _ in range(num_layers)]
  rate = tf.Variable(1e-3)

  @tf.function
  def step(x: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
      for weight in weights:
        x = tf.tanh(tf.matmul(x, weight) * .5 + .1)
      loss = tf.reduce_sum(x)
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
      weight.assign_sub(rate * gradient)
    return loss

  return step
