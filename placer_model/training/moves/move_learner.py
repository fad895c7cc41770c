"""Updates of the move network: PPO, and regression of its predictions.

The network has two outputs, the probability that a move gains and the size of
the gain. Their combination is the score of a move, and the softmax of scores is
the policy. PPO (`PlacementAgent`, with one decision per choice) raises the
probability of choices whose reward exceeded the expected one. The two outputs
are also the critic: they predict the reward. So they are trained further on the
priced moves, as in pretraining.
"""

from __future__ import annotations

import math
from typing import Sequence

import numpy as np
import tensorflow as tf

from gdp_grappler.placers.search.moves import move_network
from placer_model.training import agent as agent_lib
from placer_model.training import divergences
from placer_model.training import optimizers as optimizers_lib
from placer_model.training.moves import episodes
from placer_model.training.moves import move_config
from placer_model.training.moves import move_layers

# Rewards below this are rounding errors of the price.
_LEAST_REWARD = 1e-6
# Weight of the loss of a gain's size, relative to that of its probability.
_GAIN_SHARE = .05
_EPSILON = 1e-5  # Adam's least divisor.


class MoveLearner:
  """A move network and its optimizers; all graphs of a run share it.

  Attributes:
    layers: The network.
    ppo_optimizer: Optimizer of PPO.
    critic_optimizer: Optimizer of the predictions.
  """

  def __init__(self, network: move_network.MoveNetwork,
               config: move_config.MoveConfig) -> None:
    """Starts with the weights of a network.

    Args:
      network: Network with F features.
      config: Settings of the training.
    """
    self._config = config
    self.layers = move_layers.MoveLayers(network, config.gain_weight,
                                         config.temperature)
    self.ppo_optimizer = optimizers_lib.Adam(config.learning_rate,
                                             epsilon=_EPSILON)
    self.critic_optimizer = optimizers_lib.Adam(config.critic_rate,
                                                epsilon=_EPSILON)
    self._num_looks = _most_looks(config)
    self._looks = {
        'moves':
            tf.Variable(
                tf.zeros(
                    (self._num_looks, config.draws, len(network.features))),
                trainable=False), 'look':
                    tf.Variable(tf.zeros(config.rollouts, tf.int32),
                                trainable=False),
        'open':
            tf.Variable(tf.ones((config.rollouts, config.draws), tf.bool),
                        trainable=False)
    }
    self.layers(self._looks)
    for optimizer in (self.ppo_optimizer, self.critic_optimizer):
      optimizer.build(self.layers.trainable_variables)
    self._agent = agent_lib.PlacementAgent(self.layers, self._looks,
                                           config.rollouts, config.draws,
                                           config, self.ppo_optimizer)
    self._criticize = tf.function(self._critic_step, autograph=False)

  def network(self) -> move_network.MoveNetwork:
    """Returns a network with the current weights."""
    return self.layers.network()

  def learn(self, looks: Sequence[episodes.Look]) -> dict[str, float]:
    """Updates the network by the looks of an iteration.

    Args:
      looks: At least one look.

    Returns:
      'loss', 'clip_fraction', 'entropy', 'kl' of PPO, and 'critic_loss'.
    """
    chosen, advantages, rewards = self._show(looks)
    before = self._agent.probabilities()
    figures = self._agent.train(before, chosen[None], rewards[:1],
                                advantages[:, None])
    for _ in range(self._config.critic_epochs):
      loss = self._criticize(tf.constant(chosen, tf.int32),
                             tf.constant(rewards, tf.float32))
    after = self._agent.probabilities()
    return {
        **figures, 'critic_loss':
            float(loss) if self._config.critic_epochs else 0., 'entropy':
                divergences.entropy(before), 'kl':
                    divergences.divergence(before, after)
    }

  def _show(
      self, looks: Sequence[episodes.Look]
  ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Assigns `_looks` for the N choices of an update.

    If there are fewer choices than N, choices are repeated.

    Returns:
      int [N] moves, float64 [N] advantages, and float64 [N] rewards.
    """
    config = self._config
    looks = looks[:self._num_looks]
    moves = np.zeros(self._looks['moves'].shape, np.float32)
    drawn = np.zeros((self._num_looks, config.draws), bool)
    for number, look in enumerate(looks):
      moves[number, :len(look.features)] = look.features
      drawn[number, :len(look.features)] = True
    rows = [(number, turn) for number, look in enumerate(looks)
            for turn in range(len(look.chosen))]
    rows = [rows[k % len(rows)] for k in range(config.rollouts)]
    of_look = np.array([number for number, _ in rows])
    is_open = drawn[of_look]
    for row, (number, turn) in enumerate(rows):
      is_open[row, looks[number].chosen[:turn]] = False
    for name, value in (('moves', moves), ('look', of_look), ('open', is_open)):
      self._looks[name].assign(value)
    chosen = np.array([looks[number].chosen[turn] for number, turn in rows])
    rewards = np.array([looks[number].rewards[turn] for number, turn in rows])
    expected = np.array([looks[number].expected for number, _ in rows])
    return chosen, rewards - expected, rewards

  def _critic_step(self, chosen: tf.Tensor, rewards: tf.Tensor) -> tf.Tensor:
    """Fits the predictions to the rewards; returns the loss before the step."""
    features = tf.gather_nd(self._looks['moves'],
                            tf.stack([self._looks['look'], chosen], axis=1))
    gaining = tf.cast(rewards > _LEAST_REWARD, tf.float32)
    # A reward is minus the logarithm of the remaining share of the step; sizes
    # are logarithms of the saved share.
    sizes = tf.math.log(-tf.math.expm1(-tf.maximum(rewards, _LEAST_REWARD)))
    with tf.GradientTape() as tape:
      logits, gains = self.layers.predict(features)
      logistic = tf.nn.sigmoid_cross_entropy_with_logits(gaining, logits)
      squares = gaining * tf.square(gains - sizes) / 2
      loss = tf.reduce_mean(logistic + _GAIN_SHARE * squares)
    weights = self.layers.trainable_variables
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, weights),
                                          self._config.gradient_clip)
    self.critic_optimizer.apply_gradients(zip(gradients, weights))
    return loss


def _most_looks(config: move_config.MoveConfig) -> int:
  """Returns the largest number of looks in an iteration.

  The last look of an episode may price fewer moves.
  """
  return (math.ceil(config.rollouts / config.at_once)
          + math.ceil(config.rollouts / (config.episode_prices - 1)))
