"""Normalization layers: over one unit's state, or over all units."""

from __future__ import annotations

import tensorflow as tf

# Added to variances, so that columns that hardly vary stay small.
EPSILON = 1e-4


class LayerNorm(tf.keras.layers.Layer):
  """Layer normalization (Ba et al. 2016) of [M, w] over w.

  Keras's own layer makes five times as many ops. A process that serves a policy
  would have to load and optimize them.
  """

  def build(self, shape: tf.TensorShape) -> None:
    """Makes the scale and the offset."""
    self.gain = self.add_weight('gain', [shape[-1]], initializer='ones')
    self.bias = self.add_weight('bias', [shape[-1]], initializer='zeros')

  def call(self, x: tf.Tensor) -> tf.Tensor:
    """Normalizes each row: [M, w] -> [M, w]."""
    rest = x - tf.reduce_mean(x, axis=1, keepdims=True)
    return self.gain * _unit_variance(rest, axis=1) + self.bias


class GraphNorm(tf.keras.layers.Layer):
  """GraphNorm (Cai et al., ICML 2021) of [M, w] over the M units of a graph.

  y = gain * (x - share * mean) / deviation + bias; gain, share and bias are
  learned. After max pooling of sigmoids, the difference between two units'
  states is about a tenth of their mean. Without this layer the placement
  network needs its first hundreds of steps to find that difference.
  """

  def build(self, shape: tf.TensorShape) -> None:
    """Makes the share of the mean, the scale and the offset."""
    self.share = self.add_weight('share', [shape[-1]], initializer='ones')
    self.gain = self.add_weight('gain', [shape[-1]], initializer='ones')
    self.bias = self.add_weight('bias', [shape[-1]], initializer='zeros')

  def call(self, x: tf.Tensor) -> tf.Tensor:
    """Normalizes each column: [M, w] -> [M, w]."""
    rest = x - self.share * tf.reduce_mean(x, axis=0)
    return self.gain * _unit_variance(rest, axis=0) + self.bias


def standardize(x: tf.Tensor) -> tf.Tensor:
  """Returns [M, w] with columns of mean 0 and deviation at most 1."""
  return _unit_variance(x - tf.reduce_mean(x, axis=0), axis=0)


def _unit_variance(rest: tf.Tensor, axis: int) -> tf.Tensor:
  variance = tf.reduce_mean(tf.square(rest), axis=axis, keepdims=True)
  return rest * tf.math.rsqrt(variance + EPSILON)
