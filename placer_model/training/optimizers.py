"""What changes a placer's weights."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import tensorflow as tf

from placer_model.training import train_config


class Adam(tf.keras.optimizers.legacy.Adam):
  """Adam with one op per weight.

  Keras's present one makes a dozen of each, which take as long to trace as the
  whole network.
  """

  def build(self, variables: Sequence[tf.Variable]) -> None:
    """Makes the moments of all weights, where they are not there yet.

    Left to the first step, they would have it traced twice.

    Args:
      variables: All that it will ever change.
    """
    self._create_all_weights(variables)


@dataclasses.dataclass(frozen=True, eq=False)
class Optimizers:
  """Those of a placer, for all trainers that share it.

  Attributes:
    ppo: Its epsilon is larger than Keras's: a policy that is nearly decided has
      tiny gradients, and Adam would blow up their noise.
    imitation: Another, so that the moments of each stay its own.
  """

  ppo: Adam
  imitation: Adam

  @classmethod
  def make(cls, config: train_config.TrainConfig) -> Optimizers:
    """Fresh ones."""
    return cls(Adam(config.learning_rate, epsilon=1e-5),
               Adam(config.imitation_learning_rate))

  def build(self, variables: Sequence[tf.Variable]) -> None:
    """See `Adam.build`."""
    for optimizer in (self.ppo, self.imitation):
      optimizer.build(variables)
