"""The move network as TensorFlow ops with trainable weights.

No other module of this package knows the layers of a `MoveNetwork`. The
standardization of features is not trained.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import tensorflow as tf

from gdp_grappler.placers.search.moves import move_network

# Fields of a `MoveNetwork` that are trained.
_LEARNED = ('hidden_weights', 'hidden_bias', 'weights', 'bias')
# Logit of a move that cannot be chosen. It is finite, but its exponential is 0.
_NEVER = -1e9


class MoveLayers(tf.keras.layers.Layer):
  """A network whose softmax over the moves of a look is the policy.

  Attributes:
    features: [F], names of the features of moves.
  """

  def __init__(self, network: move_network.MoveNetwork, gain_weight: float,
               temperature: float) -> None:
    """Starts with the weights of a network.

    Args:
      network: Network with F features.
      gain_weight: Weight of the predicted gain in a score, see
        `move_scoring.GAIN_WEIGHT`.
      temperature: Divisor of the scores.
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
    """Predicts whether moves gain, and how much.

    Args:
      moves: float32 [..., F], standardized features.

    Returns:
      Logits of gaining, and logarithms of the gains, float32 [...] each.
    """
    learned = self._learned
    hidden = tf.nn.relu(
        tf.tensordot(moves, learned['hidden_weights'], 1)
        + learned['hidden_bias'])
    logits, gains = tf.unstack(
        tf.tensordot(hidden, learned['weights'], 1) + learned['bias'], axis=-1)
    return logits, gains

  def call(self, looks: Mapping[str, tf.Tensor]) -> tf.Tensor:
    """Returns logits of the moves in each of N choices, float32 [N, K].

    Args:
      looks: Tensors by name. 'moves' is float32 [L, K, F], standardized
        features of the drawn moves of each look. 'look' is int32 [N], the look
        of each choice. 'open' is bool [N, K], whether a move can still be
        chosen.
    """
    logits, gains = self.predict(looks['moves'])
    scores = tf.math.log_sigmoid(logits) + self._gain_weight * gains
    rows = tf.gather(scores / self._temperature, looks['look'])
    return tf.where(looks['open'], rows, _NEVER)

  def network(self) -> move_network.MoveNetwork:
    """Returns a network with the current weights."""
    return dataclasses.replace(
        self._start,
        **{name: value.numpy() for name, value in self._learned.items()})
