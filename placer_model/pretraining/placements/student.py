"""The policy network in training on examples."""

from __future__ import annotations

from typing import Sequence

import numpy as np
import tensorflow as tf

from placer_model import config as config_lib
from placer_model import network as network_lib
from placer_model.pretraining.placements import example as example_lib
from placer_model.training import optimizers

_CLIP = 1.  # Largest norm of the mean gradient of a round.
# Share of the target probability that is spread over all allowed devices. It
# limits the network's confidence, and thus the loss of confident errors.
_SMOOTHING = .02


class Student:
  """A network and its optimizer.

  Attributes:
    network: The network.
    optimizer: The optimizer, with its moments.
  """

  def __init__(self, config: config_lib.PlacerConfig, learning_rate: float,
               patience: float) -> None:
    """Makes the network with its initial weights.

    Args:
      config: Sizes and switches of the network.
      learning_rate: Peak learning rate of Adam.
      patience: See `example.Example.target`.
    """
    self.network = network_lib.PlacerNetwork(config)
    self.optimizer = optimizers.Adam(learning_rate)
    self.optimizer.build(self.network.trainable_variables)
    self._rate, self._patience = learning_rate, patience
    specs = network_lib.feature_specs()
    self._gradients = tf.function(
        self._losses, input_signature=[
            specs,
            tf.TensorSpec([None, None], tf.float32),
            tf.TensorSpec([None], tf.float32)
        ], autograph=False)
    self._logits = tf.function(self.network, input_signature=[specs],
                               autograph=False)

  def logits(self, example: example_lib.Example) -> np.ndarray:
    """Returns the network's logits of an example, float32 [M, D]."""
    return self._logits(network_lib.features_to_tensors(
        example.features)).numpy()

  def learn(self, examples: Sequence[example_lib.Example],
            share: float) -> float:
    """Takes one step of the optimizer; returns the mean loss, nats per unit.

    Args:
      examples: At least one example.
      share: Share of the learning rate.
    """
    sums, loss = None, 0.
    for example in examples:
      weights = example.weights
      target = example.target(self.logits(example), weights, self._patience)
      value, gradients = self._gradients(
          network_lib.features_to_tensors(example.features),
          tf.constant(_smoothed(target, example.features.allowed)),
          tf.constant(weights))
      sums = gradients if sums is None else [
          a + b for a, b in zip(sums, gradients)
      ]
      loss += float(value)
    assert sums is not None
    clipped, _ = tf.clip_by_global_norm([g / len(examples) for g in sums],
                                        _CLIP)
    self.optimizer.learning_rate = self._rate * share
    self.optimizer.apply_gradients(
        zip(clipped, self.network.trainable_variables))
    return loss / len(examples)

  def _losses(self, features: network_lib.Features, targets: tf.Tensor,
              weights: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean(weights * tf.nn.softmax_cross_entropy_with_logits(
          targets, self.network(features)))
    return loss, [
        tf.convert_to_tensor(gradient)
        for gradient in tape.gradient(loss, self.network.trainable_variables)
    ]


def _smoothed(target: np.ndarray, allowed: np.ndarray) -> np.ndarray:
  """Returns targets with label smoothing, float32 [M, D]."""
  said = np.arange(allowed.shape[1]) == target[:, None]
  number = allowed.sum(axis=1, keepdims=True)
  spread = allowed * _SMOOTHING / np.maximum(number, 1)
  return (spread + (1 - _SMOOTHING) * said).astype(np.float32)
