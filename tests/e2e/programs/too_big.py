"""Trains a model that fits on two cards but not on one; FOLDER [off].

The cards are logical CPUs with small memories in a cluster file.
"""

import collections
import json
import pathlib
import sys

import keras
import numpy as np
import small_memories
import tensorflow as tf

import gdp_grappler

_CARD_BYTES = 4_700_000
# Too little memory for the variables, which have to move to another device.
_HOST_BYTES = 3_000_000


def _devices(variables):
  return collections.Counter(v.value.device[-5:] for v in variables)


def _model():
  keras.utils.set_random_seed(1)
  model = keras.Sequential(
      [keras.Input((256,), batch_size=16)]
      + [keras.layers.Dense(256, 'relu') for _ in range(8)]
      + [keras.layers.Dense(4)])
  model.compile('adam', 'mse', jit_compile=False)
  return model


def main():
  folder = pathlib.Path(sys.argv[1])
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 3)
  if len(sys.argv) < 3:
    cluster = small_memories.write(folder, _HOST_BYTES, _CARD_BYTES)
    tf.config.optimizer.set_experimental_options(
        {'gdp_placement': {'cluster': cluster, 'cache': False}})
  # CPU:1 stands for the card that TensorFlow uses by default.
  with tf.device('CPU:1'), gdp_grappler.made_on_host():
    model = _model()
  made = _devices(model.variables)
  x = np.random.default_rng(0).normal(size=(64, 256)).astype('f')
  y = np.zeros((64, 4), 'f')
  history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False)
  variables = [*model.variables, *model.optimizer.variables]
  sizes = collections.Counter()
  for variable in variables:
    sizes[variable.value.device[-5:]] += variable.value.shape.num_elements() * 4
  loss = model.evaluate(x, y, batch_size=16, verbose=0)
  model.save(folder / 'model.keras')
  loaded = keras.models.load_model(folder / 'model.keras')
  print(
      json.dumps({
          'made': made, 'bytes': sizes, 'card_bytes': _CARD_BYTES,
          'host_bytes': _HOST_BYTES, 'losses': history.history['loss'],
          'evaluated': loss, 'loaded': loaded.evaluate(x, y, batch_size=16,
                                                       verbose=0)
      }))


main()
