"""Optimizers of the weights of networks."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import tensorflow as tf

from placer_model.training import train_config


class Adam(tf.keras.optimizers.legacy.Adam):
  """Adam with one op per weight.

  Keras's current Adam makes a dozen ops per weight, which take as long to trace
  as the whole network.
  """

  def build(self, variables: Sequence[tf.Variable]) -> None:
    """Makes the moments of all weights that have none yet.

    If the first step made them, it would be traced twice.

    Args:
      variables: All weights that the optimizer will change.
    """
    self._create_all_weights(variables)


@dataclasses.dataclass(frozen=True, eq=False)
class Optimizers:
  """Optimizers of a network; all trainers that share the network share them.

  Attributes:
    ppo: Optimizer of PPO. Its epsilon is larger than Keras's default: a policy
      that is nearly certain has tiny gradients, and Adam would amplify their
      noise.
    imitation: Optimizer of imitation, separate so that the moments do not mix.
  """

  ppo: Adam
  imitation: Adam

  @classmethod
  def make(cls, config: train_config.TrainConfig) -> Optimizers:
    """Returns new optimizers."""
    return cls(Adam(config.learning_rate, epsilon=1e-5),
               Adam(config.imitation_learning_rate))

  def build(self, variables: Sequence[tf.Variable]) -> None:
    """See `Adam.build`."""
    for optimizer in (self.ppo, self.imitation):
      optimizer.build(variables)
