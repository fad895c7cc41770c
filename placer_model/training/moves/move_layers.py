"""The move network as TensorFlow ops with weights that learn.

The only module that knows the layers of a `MoveNetwork`. The scale of the
features stays as it is.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import tensorflow as tf

from gdp_grappler.placers.search.moves import move_network

# Fields of a `MoveNetwork` that learn.
_LEARNED = ('hidden_weights', 'hidden_bias', 'weights', 'bias')
# Where a move is not open; its probability is zero.
_NEVER = -1e9


class MoveLayers(tf.keras.layers.Layer):
  """A network whose softmax over the moves of a look is the policy.

  Attributes:
    features: [F], names of the features of moves.
  """

  def __init__(self, network: move_network.MoveNetwork, gain_weight: float,
               temperature: float) -> None:
    """Begins with the weights of a network.

    Args:
      network: Of F features.
      gain_weight: As of `move_filter.FilterConfig`.
      temperature: Divides the scores.
    """
    super().__init__(name='moves')
    self.features = network.features
    self._start = network
    self._gain_weight, self._temperature = gain_weight, temperature
    self._learned = {
        name: tf.Variable(getattr(network, name), name=name, dtype=tf.float32)
        for name in _LEARNED
    }

  def predict(self, moves: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Logits of gaining and logarithms of the gains, float32 [...] each.

    Args:
      moves: float32 [..., F], standardized features.
    """
    learned = self._learned
    hidden = tf.nn.relu(
        tf.tensordot(moves, learned['hidden_weights'], 1)
        + learned['hidden_bias'])
    logits, gains = tf.unstack(
        tf.tensordot(hidden, learned['weights'], 1) + learned['bias'], axis=-1)
    return logits, gains

  def call(self, looks: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """float32 [N, K], logits of the moves that N choices are among.

    Args:
      looks: 'moves' float32 [L, K, F], standardized features of what was drawn
        at each look; 'look' int32 [N], which look each choice is of; 'open'
        bool [N, K], whether a move can still be chosen.
    """
    logits, gains = self.predict(looks['moves'])
    scores = tf.math.log_sigmoid(logits) + self._gain_weight * gains
    rows = tf.gather(scores / self._temperature, looks['look'])
    return tf.where(looks['open'], rows, _NEVER)

  def network(self) -> move_network.MoveNetwork:
    """The weights as they are now."""
    return dataclasses.replace(
        self._start,
        **{name: value.numpy() for name, value in self._learned.items()})
