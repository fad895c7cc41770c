"""Where a unit stands in the sequence (Vaswani et al. 2017, section 3.5).

GDP leaves positions out, because the graph embedding says where a unit stands.
It does not where a graph repeats itself: units that look alike, among
neighbours that look alike, have one embedding and get one device.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

# Waves of the fastest sine over a whole graph, and of the slowest.
_MOST_WAVES, _LEAST_WAVES = 128., .5

# Of places in a structure: as many as tell sixteen equal stretches apart.
_MOST_STRETCHES = 8.


def encode_places(places: tf.Tensor, count: int) -> tf.Tensor:
  """Whether places are known, and sines and cosines of those that are.

  Args:
    places: float32 [R, P], 0 to 1; below 0 where unknown.
    count: Number of sines.

  Returns:
    float32 [R, P (1 + 2 count)].
  """
  waves = np.geomspace(_LEAST_WAVES, _MOST_STRETCHES, count)
  known = tf.cast(places >= 0, tf.float32)[:, :, None]  # [R, P, 1]
  angle = places[:, :, None] * tf.constant(2 * np.pi * waves, tf.float32)
  each = known * tf.concat(
      [tf.ones_like(known), tf.sin(angle),
       tf.cos(angle)], axis=2)
  return tf.reshape(each, [-1, places.shape[1] * (1 + 2 * count)])


def encode(size: tf.Tensor, count: int) -> tf.Tensor:
  """Sines and cosines of each place's share of the sequence.

  Args:
    size: int32 scalar, M.
    count: Number of sines.

  Returns:
    float32 [M, 2 count].
  """
  waves = np.geomspace(_LEAST_WAVES, _MOST_WAVES, count)
  share = (tf.range(tf.cast(size, tf.float32)) + .5) / tf.cast(size, tf.float32)
  angle = share[:, None] * tf.constant(2 * np.pi * waves, tf.float32)
  return tf.concat([tf.sin(angle), tf.cos(angle)], axis=1)
