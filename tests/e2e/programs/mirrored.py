"""Trains replicas of a model by a distribution strategy of TensorFlow."""

import common
import numpy as np
import tensorflow as tf

common.make_devices(2)
X = np.random.RandomState(0).randn(64, 8).astype(np.float32)
Y = np.zeros(64)


def losses(option):
  """Returns the losses of a new model."""
  common.set_option(option)
  strategy = tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])
  with strategy.scope():
    model = common.compiled()
  return model.fit(X, Y, epochs=2, batch_size=16, verbose=0,
                   shuffle=False).history['loss']


if __name__ == '__main__':
  common.finish(off=losses(False), on=losses(common.RANDOM))
