"""Encodings of a unit's position (Vaswani et al. 2017, section 3.5).

GDP leaves positions out, because the graph embedding describes where a unit is.
That is not true of a graph that repeats itself: units with equal features and
equal neighbours have the same embedding, and get the same device.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

# Periods of the fastest sine over a whole graph.
_MOST_WAVES = 128.
# Periods of the slowest sine over a whole graph.
_LEAST_WAVES = .5

# Periods of the fastest sine of coordinates. It distinguishes twice as many
# equal parts.
_MOST_STRETCHES = 8.


def encode_places(places: tf.Tensor, count: int) -> tf.Tensor:
  """Encodes coordinates by whether they are known, sines and cosines.

  Args:
    places: float32 [R, P], coordinates from 0 to 1; negative where unknown.
    count: Number of sines, and of cosines.

  Returns:
    float32 [R, P (1 + 2 count)]; zeros where a coordinate is unknown.
  """
  waves = np.geomspace(_LEAST_WAVES, _MOST_STRETCHES, count)
  known = tf.cast(places >= 0, tf.float32)[:, :, None]  # [R, P, 1]
  angle = places[:, :, None] * tf.constant(2 * np.pi * waves, tf.float32)
  each = known * tf.concat(
      [tf.ones_like(known), tf.sin(angle),
       tf.cos(angle)], axis=2)
  return tf.reshape(each, [-1, places.shape[1] * (1 + 2 * count)])


def encode(size: tf.Tensor, count: int) -> tf.Tensor:
  """Encodes each position of a sequence by sines and cosines.

  Args:
    size: int32 scalar, length M of the sequence.
    count: Number of sines, and of cosines.

  Returns:
    float32 [M, 2 count].
  """
  waves = np.geomspace(_LEAST_WAVES, _MOST_WAVES, count)
  share = (tf.range(tf.cast(size, tf.float32)) + .5) / tf.cast(size, tf.float32)
  angle = share[:, None] * tf.constant(2 * np.pi * waves, tf.float32)
  return tf.concat([tf.sin(angle), tf.cos(angle)], axis=1)
