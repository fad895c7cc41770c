"""Transformer-XL over the sequence of units (GDP, section 3.2).

The layers follow Dai et al. (ACL 2019), section 3.2, with two differences.
There is no positional embedding, relative or absolute, because the graph
embedding describes where a unit is. There is no causal mask, because the
devices of all units are chosen at once.

The memory of a segment is this layer's input for the previous segment, without
a gradient. So no segment waits for the output of another, and all segments are
computed in parallel.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from placer_model.layers import norms
from placer_model.layers import superposition

_EXCLUDED = -1e9  # Finite, and its exponential is exactly 0.


def to_segments(x: tf.Tensor, length: int) -> tf.Tensor:
  """Cuts [M, w] into [ceil(M / length), length, w], padded with zeros."""
  size = tf.shape(x)[0]
  count = -(-size // length)
  padded = tf.pad(x, [[0, count * length - size], [0, 0]])
  return tf.reshape(padded, [count, length, x.shape[-1]])


def with_memory(own: tf.Tensor, cached: tf.Tensor) -> tf.Tensor:
  """Prepends to each segment the cached values of the previous segment.

  Args:
    own: float32 [n, H, S, d], values of the segments.
    cached: float32 [n, H, S, d], values to cache, computed without a gradient.

  Returns:
    float32 [n, H, 2 S, d]; zeros precede the first segment.
  """
  previous = tf.concat([tf.zeros_like(cached[:1]), cached[:-1]], axis=0)
  return tf.concat([previous, own], axis=2)


def context_bias(size: tf.Tensor, length: int) -> tf.Tensor:
  """Returns a bias that excludes padding and the first segment's memory.

  Args:
    size: int32 scalar, M.
    length: Length S of a segment.

  Returns:
    float32 [n, 1, 1, 2 S], to be added to attention scores: 0 or a large
    negative number.
  """
  count = -(-size // length)
  position = (tf.range(-length, length)[None]
              + length * tf.range(count)[:, None])  # [n, 2 S]
  real = (position >= 0) & (position < size)
  return tf.where(real, 0.0, _EXCLUDED)[:, None, None]


class SegmentAttention(tf.keras.layers.Layer):
  """Multi-head attention of each segment to itself and the previous one."""

  def __init__(self, units: int, heads: int, head_units: int,
               segment_length: int, seed: int = 0, **kwargs: Any) -> None:
    """Makes the layer.

    Args:
      units: Width h of input and output.
      heads: Number H of heads.
      head_units: Width d of each head.
      segment_length: Number S of units in a segment.
      seed: Seed of the initial weights.
      **kwargs: Arguments of the Keras layer.
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
    """Returns the attention output of each unit.

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
    """Transposes [n, S, 5 H d] to [n, 5 H, S, d]."""
    shape = [tf.shape(x)[0], self._length, 5 * self._heads, self._head_units]
    return tf.transpose(tf.reshape(x, shape), [0, 2, 1, 3])


class TransformerXlLayer(tf.keras.layers.Layer):
  """Attention and a position-wise network, each with norm and residual.

  The norms come first (Xiong et al., ICML 2020), so training needs no warm-up
  of the learning rate. Without attention, the layer is a residual MLP that
  processes each unit by itself.
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
      seed: Seed of the initial weights.
      **kwargs: Arguments of the Keras layer.
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
    """Returns the new states.

    Args:
      x: float32 [M, h], states.
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
  """Returns a dense layer whose initial kernel depends only on the seed."""
  return tf.keras.layers.Dense(
      units, activation, **kwargs,
      kernel_initializer=tf.keras.initializers.GlorotUniform(seed))
