"""States of order one: over a unit's state, or over all units of a graph."""

from __future__ import annotations

import tensorflow as tf

# Added to variances: what hardly varies stays small.
EPSILON = 1e-4


class LayerNorm(tf.keras.layers.Layer):
  """Layer normalization (Ba et al. 2016) of [M, w] over w.

  Keras's own layer makes five times as many ops, which the process that serves
  a policy would have to load and optimize.
  """

  def build(self, shape: tf.TensorShape) -> None:
    """Makes the scale and the offset."""
    self.gain = self.add_weight('gain', [shape[-1]], initializer='ones')
    self.bias = self.add_weight('bias', [shape[-1]], initializer='zeros')

  def call(self, x: tf.Tensor) -> tf.Tensor:
    """[M, w] -> [M, w]."""
    rest = x - tf.reduce_mean(x, axis=1, keepdims=True)
    return self.gain * _unit_variance(rest, axis=1) + self.bias


class GraphNorm(tf.keras.layers.Layer):
  """GraphNorm (Cai et al., ICML 2021) of [M, w] over the M units of a graph.

  y = gain * (x - share * mean) / deviation + bias, all learned. States that
  passed through max pooling of sigmoids differ between units by a tenth of
  what they have in common; without this layer the placement network spends its
  first hundreds of steps on finding the difference.
  """

  def build(self, shape: tf.TensorShape) -> None:
    """Makes the scale and the offset."""
    self.share = self.add_weight('share', [shape[-1]], initializer='ones')
    self.gain = self.add_weight('gain', [shape[-1]], initializer='ones')
    self.bias = self.add_weight('bias', [shape[-1]], initializer='zeros')

  def call(self, x: tf.Tensor) -> tf.Tensor:
    """[M, w] -> [M, w]."""
    rest = x - self.share * tf.reduce_mean(x, axis=0)
    return self.gain * _unit_variance(rest, axis=0) + self.bias


def standardize(x: tf.Tensor) -> tf.Tensor:
  """[M, w] -> [M, w], each column with mean 0 and deviation at most 1."""
  return _unit_variance(x - tf.reduce_mean(x, axis=0), axis=0)


def _unit_variance(rest: tf.Tensor, axis: int) -> tf.Tensor:
  variance = tf.reduce_mean(tf.square(rest), axis=axis, keepdims=True)
  return rest * tf.math.rsqrt(variance + EPSILON)
