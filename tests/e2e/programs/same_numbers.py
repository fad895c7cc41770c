"""Nets whose numbers change if ops that oneDNN merges are separated.

Each net trains twice from the same weights, unplaced and then placed.
"""

import common

common.make_devices(2)
import keras  # noqa: E402
from keras.src.applications import nasnet  # noqa: E402
import numpy as np  # noqa: E402

layers = keras.layers


def mixed_bfloat16():
  keras.mixed_precision.set_global_policy('mixed_bfloat16')
  model = keras.Sequential([
      layers.Input((16, 16, 3)),
      layers.Conv2D(8, 3, padding='same', activation='relu'),
      layers.BatchNormalization(),
      layers.MaxPooling2D(),
      layers.Conv2D(16, 3),
      layers.ReLU(),
      layers.Flatten(),
      layers.Dense(10, 'softmax', dtype='float32')
  ])
  keras.mixed_precision.set_global_policy('float32')
  return model


def nasnet_cells():
  """Returns a net of two cells of NASNetMobile."""
  inputs = layers.Input((32, 32, 3))
  x = layers.Conv2D(8, 3, strides=2)(inputs)
  x, before = nasnet._reduction_a_cell(x, None, 8, block_id='first')
  x, _ = nasnet._normal_a_cell(x, before, 8, block_id='second')
  x = layers.GlobalAveragePooling2D()(x)
  return keras.Model(inputs, layers.Dense(10, 'softmax')(x))


class _Losses(keras.callbacks.Callback):

  def on_train_begin(self, logs=None):
    self.values = []

  def on_train_batch_end(self, batch, logs=None):
    self.values.append(float(logs['loss']))


def numbers_of(build, seeds, steps=4):
  """Returns losses of an unplaced run, and of a placed run per seed.

  Also returns the largest difference of a weight from the unplaced run, and the
  number of devices in use.
  """
  keras.utils.set_random_seed(0)
  model = build()
  model.compile(keras.optimizers.SGD(0.05), 'sparse_categorical_crossentropy')
  random = np.random.RandomState(0)
  x = random.randn(8 * steps, *model.input_shape[1:]).astype(np.float32)
  y = random.randint(0, 10, 8 * steps)
  start, runs, used, weights = model.get_weights(), [], [], []
  for option in (False, *({**common.RANDOM, 'seed': s} for s in seeds)):
    common.set_option(option)
    model.set_weights(start)
    told = _Losses()
    _, devices = common.devices_used(lambda told=told: model.fit(
        x, y, batch_size=8, verbose=0, shuffle=False, callbacks=[told]))
    runs.append(told.values)
    used.append(len(devices))
    weights.append(model.get_weights())
  return {
      'losses':
          runs, 'devices':
              used, 'differences': [
                  max(float(abs(a - b).max()) for a, b in zip(weights[0], w))
                  for w in weights[1:]
              ]
  }


def main():
  common.finish(mixed_bfloat16=numbers_of(mixed_bfloat16, (0, 1)),
                nasnet_cells=numbers_of(nasnet_cells, (4,)))


if __name__ == '__main__':
  main()
