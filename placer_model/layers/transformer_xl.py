"""Transformer-XL over the sequence of units (GDP, section 3.2).

Dai et al. (ACL 2019), equations of section 3.2, without positional embedding,
relative or absolute: the graph embedding says where a unit stands. There is no
causal mask either, because all units are decided in one shot.

The memory of a segment is this layer's input for the previous segment, without
gradient. It does not depend on any later computation, and without positions
nothing else ties a segment to its place, so all segments run at once.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from placer_model.layers import norms
from placer_model.layers import superposition

_EXCLUDED = -1e9  # exp() of it is exactly zero, and it stays finite


def to_segments(x: tf.Tensor, length: int) -> tf.Tensor:
  """Cuts [M, w] into [ceil(M / length), length, w]; the rest is zero."""
  size = tf.shape(x)[0]
  count = -(-size // length)
  padded = tf.pad(x, [[0, count * length - size], [0, 0]])
  return tf.reshape(padded, [count, length, x.shape[-1]])


def with_memory(own: tf.Tensor, cached: tf.Tensor) -> tf.Tensor:
  """Puts before each segment what is cached of its predecessor.

  Args:
    own: float32 [n, H, S, d].
    cached: float32 [n, H, S, d].

  Returns:
    float32 [n, H, 2 S, d]; the first segment has zeros before it.
  """
  previous = tf.concat([tf.zeros_like(cached[:1]), cached[:-1]], axis=0)
  return tf.concat([previous, own], axis=2)


def context_bias(size: tf.Tensor, length: int) -> tf.Tensor:
  """Excludes padding and the first segment's missing memory.

  Args:
    size: int32 scalar, M.
    length: S.

  Returns:
    float32 [n, 1, 1, 2 S], added to scores: 0 or a large negative number.
  """
  count = -(-size // length)
  position = (tf.range(-length, length)[None]
              + length * tf.range(count)[:, None])  # [n, 2 S]
  real = (position >= 0) & (position < size)
  return tf.where(real, 0.0, _EXCLUDED)[:, None, None]


class SegmentAttention(tf.keras.layers.Layer):
  """Multi-head attention of each segment to itself and its predecessor."""

  def __init__(self, units: int, heads: int, head_units: int,
               segment_length: int, seed: int = 0, **kwargs: Any) -> None:
    """Makes the layer.

    Args:
      units: Width h of input and output.
      heads: H.
      head_units: Width d of each head.
      segment_length: S.
      seed: Decides the first weights.
      **kwargs: Of the Keras layer.
    """
    super().__init__(**kwargs)
    self._heads, self._head_units = heads, head_units
    self._length = segment_length
    self.query = dense(heads * head_units, seed, name='query')
    self.key = dense(heads * head_units, seed + 1, name='key')
    self.value = dense(heads * head_units, seed + 2, name='value')
    self.out = dense(units, seed + 3, name='out')

  def call(self, x: tf.Tensor,
           conditions: superposition.Conditions | None = None) -> tf.Tensor:
    """Attends.

    Args:
      x: float32 [M, h].
      conditions: See `superposition.superpose`.

    Returns:
      float32 [M, h].
    """
    size = tf.shape(x)[0]
    x = superposition.superpose(x, conditions)
    memory = tf.stop_gradient(x)
    parts = tf.concat([
        self.query(x),
        self.key(x),
        self.value(x),
        self.key(memory),
        self.value(memory)
    ], axis=1)  # [M, 5 H d]
    query, key, value, old_key, old_value = tf.split(
        self._heads_first(to_segments(parts, self._length)), 5, axis=1)
    key = with_memory(key, old_key)  # [n, H, 2 S, d]
    value = with_memory(value, old_value)  # [n, H, 2 S, d]
    scores = tf.matmul(query * self._head_units**-0.5, key,
                       transpose_b=True)  # [n, H, S, 2 S]
    weights = tf.nn.softmax(scores + context_bias(size, self._length))
    mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
    mixed = tf.reshape(
        mixed,
        [tf.shape(mixed)[0] * self._length, self._heads * self._head_units
        ])[:size]
    return self.out(superposition.superpose(mixed, conditions))

  def _heads_first(self, x: tf.Tensor) -> tf.Tensor:
    """[n, S, 5 H d] -> [n, 5 H, S, d]."""
    shape = [tf.shape(x)[0], self._length, 5 * self._heads, self._head_units]
    return tf.transpose(tf.reshape(x, shape), [0, 2, 1, 3])


class TransformerXlLayer(tf.keras.layers.Layer):
  """Attention and a position-wise network, each with norm and residual.

  The norms come first (Xiong et al., ICML 2020), which trains without a
  warm-up. Without attention, the layer is a residual MLP over single units.
  """

  def __init__(self, units: int, heads: int, head_units: int,
               feed_forward_units: int, segment_length: int,
               attention: bool = True, seed: int = 0, **kwargs: Any) -> None:
    """Makes the layer.

    Args:
      units: Width h of input and output.
      heads: See `SegmentAttention`.
      head_units: See `SegmentAttention`.
      feed_forward_units: Inner width of the position-wise network.
      segment_length: See `SegmentAttention`.
      attention: False leaves attention out (ablation).
      seed: Decides the first weights.
      **kwargs: Of the Keras layer.
    """
    super().__init__(**kwargs)
    self.attention = None
    if attention:
      self.attention_norm = norms.LayerNorm(name='norm_1')
      self.attention = SegmentAttention(units, heads, head_units,
                                        segment_length, seed, name='attention')
    self.norm = norms.LayerNorm(name='norm_2')
    self.inner = dense(feed_forward_units, seed + 4, 'relu', name='inner')
    self.outer = dense(units, seed + 5, name='outer')

  def call(self, x: tf.Tensor,
           conditions: superposition.Conditions | None = None) -> tf.Tensor:
    """New states.

    Args:
      x: float32 [M, h].
      conditions: See `superposition.superpose`.

    Returns:
      float32 [M, h].
    """
    if self.attention is not None:
      x += self.attention(self.attention_norm(x), conditions)
    y = self.inner(superposition.superpose(self.norm(x), conditions))
    return x + self.outer(superposition.superpose(y, conditions))


def dense(units: int, seed: int, activation: str | None = None,
          **kwargs: Any) -> tf.keras.layers.Dense:
  """A dense layer whose kernel depends on the seed alone."""
  return tf.keras.layers.Dense(
      units, activation, **kwargs,
      kernel_initializer=tf.keras.initializers.GlorotUniform(seed))
