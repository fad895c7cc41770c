"""Adam with one op per weight."""

import placer_model  # isort: skip  # before TensorFlow  # noqa: F401

import numpy as np
import tensorflow as tf

from placer_model.training import optimizers
from placer_model.training import train_config


def test_its_steps_are_those_of_keras():
  rng = np.random.default_rng(0)
  first = rng.normal(size=(3, 2)).astype(np.float32)
  ours, theirs = tf.Variable(first), tf.Variable(first)
  adam = optimizers.Adam(0.1, epsilon=1e-5)
  keras = tf.keras.optimizers.Adam(0.1, epsilon=1e-5)
  for _ in range(5):
    gradient = tf.constant(rng.normal(size=(3, 2)), tf.float32)
    adam.apply_gradients([(gradient, ours)])
    keras.apply_gradients([(gradient, theirs)])
  np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4)


def test_what_is_built_is_traced_once():
  weight = tf.Variable([1., 2.])
  made = optimizers.Optimizers.make(train_config.TrainConfig())
  made.build([weight])
  traces = []

  @tf.function
  def step():
    traces.append(1)
    made.ppo.apply_gradients([(tf.ones(2), weight)])

  step()
  step()
  assert len(traces) == 1


def test_each_has_its_rate():
  config = train_config.TrainConfig(learning_rate=.5,
                                    imitation_learning_rate=.25)
  made = optimizers.Optimizers.make(config)
  assert float(made.ppo.learning_rate) == .5
  assert float(made.imitation.learning_rate) == .25
