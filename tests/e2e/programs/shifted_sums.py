"""A step whose sums Grappler orders by where its variables are."""

import tensorflow as tf


def model(keras):
  """A compiled model; it makes (x - 1) + b of (x + b) - 1.

  Unless b comes from another device. Once that changed the last bits, as steps
  were rewritten anew when variables had moved.

  Args:
    keras: Of either generation.
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
