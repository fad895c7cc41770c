"""HDP's policy: samples and updates of Grouper and Placer."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from placer_model.hdp import config as config_lib
from placer_model.hdp import feed_forward
from placer_model.hdp import grouper as grouper_lib
from placer_model.hdp import seq2seq

Placer = seq2seq.Seq2SeqPlacer | feed_forward.FeedForwardPlacer


class Policy:
  """Two networks with one optimizer, compiled for one graph.

  Random numbers depend only on the given seeds.
  """

  def __init__(self, grouper: grouper_lib.Grouper | None, placer: Placer,
               units: np.ndarray, config: config_lib.HdpConfig) -> None:
    """Initializes a Policy.

    Args:
      grouper: Network that chooses groups; None for a fixed grouping.
      placer: Network that chooses devices of groups.
      units: float32 [G, F], input of the Grouper.
      config: Settings of the search.
    """
    self._grouper, self._placer = grouper, placer
    self._units = tf.constant(units)
    self._config = config
    self._variables = [
        *(grouper.trainable_variables if grouper else ()),
        *placer.trainable_variables
    ]
    self._optimizer = tf.keras.optimizers.Adam(config.learning_rate)
    self._optimizer.build(self._variables)
    self._sample_grouping = tf.function(self._grouping, autograph=False)
    self._sample_devices = tf.function(self._devices, autograph=False)
    self._compiled_update = tf.function(self._descend, autograph=False)

  def sample_grouping(self, seed: tuple[int, int]) -> np.ndarray:
    """Draws a grouping from the Grouper, which has to exist; int32 [G]."""
    return self._sample_grouping(tf.constant(seed)).numpy()

  def sample_devices(self, rows: np.ndarray, allowed: np.ndarray,
                     seed: tuple[int, int]) -> np.ndarray:
    """Draws devices of groups from the Placer, int32 [S, K].

    Args:
      rows: float32 [K, W], embeddings of the groups.
      allowed: bool [K, D], allowed devices of each group.
      seed: Two numbers.
    """
    return self._sample_devices(tf.constant(rows), tf.constant(allowed),
                                tf.constant(seed)).numpy()

  def update(self, grouping: np.ndarray, rows: np.ndarray, allowed: np.ndarray,
             devices: np.ndarray, advantages: np.ndarray,
             learning_rate: float) -> None:
    """Takes one step along the policy gradient.

    Args:
      grouping: int32 [G], group of each unit.
      rows: float32 [K, W], embeddings of the groups.
      allowed: bool [K, D], allowed devices of each group.
      devices: int32 [S, K], sampled devices.
      advantages: float [S], advantage of each sample.
      learning_rate: Learning rate of this step.
    """
    self._optimizer.learning_rate.assign(learning_rate)
    self._compiled_update(tf.constant(grouping, tf.int32), tf.constant(rows),
                          tf.constant(allowed), tf.constant(devices, tf.int32),
                          tf.constant(advantages, tf.float32))

  def _grouping(self, seed: tf.Tensor) -> tf.Tensor:
    assert self._grouper is not None  # A fixed grouping is not sampled.
    return self._grouper.sample(self._units, seed)

  def _devices(self, rows: tf.Tensor, allowed: tf.Tensor,
               seed: tf.Tensor) -> tf.Tensor:
    return self._placer.sample(rows, allowed, self._config.placer_samples, seed)

  def _descend(self, grouping: tf.Tensor, rows: tf.Tensor, allowed: tf.Tensor,
               devices: tf.Tensor, advantages: tf.Tensor) -> None:
    with tf.GradientTape() as tape:
      log_p = self._placer.log_prob(rows, allowed, devices)
      if self._grouper is not None:
        log_p += self._grouper.log_prob(self._units, grouping)
      loss = -tf.reduce_mean(advantages * log_p)
    gradients = tape.gradient(loss, self._variables)
    gradients, _ = tf.clip_by_global_norm(gradients,
                                          self._config.max_gradient_norm)
    self._optimizer.apply_gradients(zip(gradients, self._variables))
