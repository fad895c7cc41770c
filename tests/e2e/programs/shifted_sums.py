"""A step whose sums Grappler orders by the devices of variables."""

import tensorflow as tf


def model(keras):
  """Returns a compiled model for which Grappler computes (x - 1) + b.

  The model itself has (x + b) - 1, which Grappler keeps if b comes from another
  device. In an earlier version that changed the last bits of results, because
  Grappler rewrote the step again after variables had moved.

  Args:
    keras: The module of Keras 2 or 3.
  """

  class Shifted(keras.Model):

    def train_step(self, batch):
      with tf.GradientTape() as tape:
        loss = tf.reduce_mean((self(batch[0], training=True) - 1.)**2)
      own = self.trainable_variables
      self.optimizer.apply_gradients(zip(tape.gradient(loss, own), own))
      return {'loss': loss}

  layers = keras.layers
  keras.utils.set_random_seed(0)
  inputs = layers.Input((8,))
  hidden = [layers.Dense(16, 'tanh')(inputs) for _ in range(2)]
  outputs = layers.Dense(1, bias_initializer='uniform')(layers.add(hidden))
  result = Shifted(inputs, outputs)
  result.compile(keras.optimizers.SGD(.1))
  return result
