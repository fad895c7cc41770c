"""Cross-entropy towards a placement, for warm start and distillation."""

from __future__ import annotations

from typing import Mapping

import numpy as np
import tensorflow as tf


class Imitation:
  """Trains a network to give a placement the highest probability."""

  def __init__(self, placer: tf.keras.layers.Layer,
               features: Mapping[str, tf.Tensor], allowed: np.ndarray,
               learning_rate: float,
               optimizer: tf.keras.optimizers.Optimizer) -> None:
    """Takes a network that maps `features` to masked logits [M, D].

    Args:
      placer: The network.
      features: Features of the graph.
      allowed: bool [M, D], allowed devices of each unit.
      learning_rate: Initial learning rate.
      optimizer: Another optimizer than PPO's, so that the moments do not mix.
    """
    self._optimizer = optimizer
    self._placer, self._features = placer, features
    self._allowed, self._learning_rate = allowed, learning_rate
    self._step = tf.function(self._one_step, autograph=False)
    self._greedy = tf.function(
        lambda: tf.argmax(placer(features), axis=1, output_type=tf.int32),
        autograph=False)

  def steps(self, decisions: np.ndarray, confidence: float,
            count: int) -> float:
    """Takes `count` gradient steps; returns the last loss.

    Args:
      decisions: int [M], target device of each unit.
      confidence: Target probability of that device; the other allowed devices
        share the rest.
      count: Number of steps.
    """
    targets = tf.constant(self._targets(decisions, confidence), tf.float32)
    loss = np.nan
    for _ in range(count):
      loss = float(self._step(targets))
    return loss

  def greedy(self) -> np.ndarray:
    """Returns the likeliest device of each unit, int32 [M]."""
    return self._greedy().numpy()

  def slow_down(self, share: float) -> None:
    """Sets the learning rate to a share of the initial one."""
    self._optimizer.learning_rate = self._learning_rate * share

  def _targets(self, decisions: np.ndarray, confidence: float) -> np.ndarray:
    """Returns the target distributions, float [M, D]."""
    said = np.arange(self._allowed.shape[1]) == decisions[:, None]
    others = self._allowed & ~said
    number = others.sum(axis=1, keepdims=True)
    spread = others * (1 - confidence) / np.maximum(number, 1)
    return np.where(said, np.where(number, confidence, 1.0), spread)

  def _one_step(self, targets: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean(
          tf.nn.softmax_cross_entropy_with_logits(targets,
                                                  self._placer(self._features)))
    variables = self._placer.trainable_variables
    gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
    self._optimizer.apply_gradients(zip(gradients, variables))
    return loss
