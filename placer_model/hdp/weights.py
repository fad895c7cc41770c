"""Functions and weights that the networks of this package share."""

from __future__ import annotations

import tensorflow as tf

# Logit of a device that is not allowed. It is finite, but its exponential is 0.
MASKED_LOGIT = -1e9


class Weights:
  """Makes variables that depend only on a seed and the order of creation."""

  def __init__(self, seed: int) -> None:
    self._seed, self._count = seed, 0

  def matrix(self, rows: int, columns: int, name: str,
             scale: float = 1.) -> tf.Variable:
    """Returns weights by Glorot (2010), times `scale`, [rows, columns]."""
    self._count += 1
    limit = scale * (6. / (rows + columns))**0.5
    return tf.Variable(
        tf.random.stateless_uniform([rows, columns], [self._seed, -self._count],
                                    -limit, limit), name=name)

  def zeros(self, size: int, name: str) -> tf.Variable:
    """Returns zeros, float32 [size]."""
    return tf.Variable(tf.zeros([size]), name=name)


def bounded(logits: tf.Tensor, constant: float,
            temperature: float) -> tf.Tensor:
  """Returns C tanh(l / T), equation 1."""
  return constant * tf.tanh(logits / temperature)
