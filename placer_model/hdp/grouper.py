"""The Grouper: a feed-forward net and a softmax over groups (HDP, 2.1)."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from placer_model.hdp import config as config_lib
from placer_model.hdp import weights as weights_lib


class Grouper(tf.Module):
  """Assigns each unit to a group, independently of the other units."""

  def __init__(self, num_features: int, num_groups: int,
               config: config_lib.HdpConfig, seed: int,
               first: np.ndarray) -> None:
    """Makes the network with its initial weights.

    Args:
      num_features: Number F of features of a unit.
      num_groups: Number K of groups.
      config: Width of the hidden layer, scale of the initial weights, and logit
        of the first groups.
      seed: Seed of the weights.
      first: int [G], groups to start with.
    """
    super().__init__(name='grouper')
    make = weights_lib.Weights(seed)
    self._hidden = make.matrix(num_features, config.grouper_units, 'hidden')
    self._bias = make.zeros(config.grouper_units, 'bias')
    self._softmax = make.matrix(config.grouper_units, num_groups, 'softmax',
                                config.initial_group_scale)
    self._prior = config.first_group_logit * tf.one_hot(first, num_groups)

  def sample(self, units: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """Draws a group for each unit, int32 [G].

    Args:
      units: float32 [G, F], features of the units.
      seed: int32 [2], seed of the sample.
    """
    return tf.random.stateless_categorical(self._logits(units), 1, seed,
                                           tf.int32)[:, 0]

  def log_prob(self, units: tf.Tensor, grouping: tf.Tensor) -> tf.Tensor:
    """Returns the log-probability of a grouping int32 [G]."""
    return -tf.reduce_sum(
        tf.nn.sparse_softmax_cross_entropy_with_logits(grouping,
                                                       self._logits(units)))

  def _logits(self, units: tf.Tensor) -> tf.Tensor:
    hidden = tf.nn.relu(tf.matmul(units, self._hidden) + self._bias)
    return tf.matmul(hidden, self._softmax) + self._prior
