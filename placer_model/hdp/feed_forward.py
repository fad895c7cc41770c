"""A Placer that decides about each unit by itself, for HDP without groups."""

from __future__ import annotations

import tensorflow as tf

from placer_model.hdp import config as config_lib
from placer_model.hdp import weights as weights_lib


class FeedForwardPlacer(tf.Module):
  """One hidden layer and a softmax over devices; used like `Seq2SeqPlacer`."""

  def __init__(self, num_features: int, num_devices: int,
               config: config_lib.HdpConfig, seed: int) -> None:
    """Makes the network with its initial weights.

    Args:
      num_features: Number F of features of a row.
      num_devices: Number D of devices.
      config: Width of the hidden layer, and constants of equation 1.
      seed: Seed of the weights.
    """
    super().__init__(name='feed_forward_placer')
    make = weights_lib.Weights(seed)
    self._config = config
    self._hidden = make.matrix(num_features, config.grouper_units, 'hidden')
    self._bias = make.zeros(config.grouper_units, 'bias')
    self._softmax = make.matrix(config.grouper_units, num_devices, 'softmax')

  def sample(self, rows: tf.Tensor, allowed: tf.Tensor, count: int,
             seed: tf.Tensor) -> tf.Tensor:
    """See `Seq2SeqPlacer.sample`."""
    return tf.transpose(
        tf.random.stateless_categorical(self._logits(rows, allowed), count,
                                        seed, tf.int32))

  def log_prob(self, rows: tf.Tensor, allowed: tf.Tensor,
               devices: tf.Tensor) -> tf.Tensor:
    """See `Seq2SeqPlacer.log_prob`."""
    log_p = tf.nn.log_softmax(self._logits(rows, allowed))  # [K, D]
    choices = tf.one_hot(devices, allowed.shape[1])  # [S, K, D]
    return tf.einsum('skd,kd->s', choices, log_p)

  def _logits(self, rows: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    hidden = tf.nn.relu(tf.matmul(rows, self._hidden) + self._bias)
    logits = weights_lib.bounded(tf.matmul(hidden, self._softmax),
                                 self._config.tanh_constant,
                                 self._config.temperature)
    return tf.where(allowed, logits, weights_lib.MASKED_LOGIT)
