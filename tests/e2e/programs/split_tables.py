"""Trains a model whose table no card can hold; FOLDER [off].

Cards are logical CPUs that a cluster file gives small memories.
"""

import collections
import dataclasses
import json
import pathlib
import sys

import keras
import numpy as np
import tensorflow as tf

from gdp_grappler.cluster import connected_devices

_CARD_BYTES = 5_500_000
_HOST_BYTES = 3_000_000
_ROWS, _WIDTH = 20_000, 32


def _small_cluster(folder):
  """CPU:0, the host, and two small cards; each has its own memory."""
  cluster = connected_devices.local_cluster(
      [f'/job:localhost/replica:0/task:0/device:CPU:{i}' for i in range(3)])
  devices = [
      dataclasses.replace(device, memory=device.name, compute=device.name,
                          memory_bytes=size, memory_margin=0.)
      for device, size in zip(cluster.devices, (_HOST_BYTES, _CARD_BYTES,
                                                _CARD_BYTES))
  ]
  path = folder / 'small.json'
  path.write_text(dataclasses.replace(cluster, devices=devices).to_json())
  return str(path)


def _model():
  keras.utils.set_random_seed(1)
  model = keras.Sequential([
      keras.Input((8,), batch_size=16, dtype='int32'),
      keras.layers.Embedding(_ROWS, _WIDTH, name='words'),
      keras.layers.Flatten(),
      keras.layers.Dense(4)
  ])
  model.compile('adam', 'mse', jit_compile=False)
  return model


def main():
  folder = pathlib.Path(sys.argv[1])
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 3)
  if len(sys.argv) < 3:
    tf.config.optimizer.set_experimental_options({
        'gdp_placement': {
            'cluster': _small_cluster(folder), 'cache': False,
            'time_budget_s': 300
        }
    })
  model = _model()
  x = np.random.default_rng(0).integers(0, _ROWS, (64, 8))
  y = np.zeros((64, 4), 'f')
  history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False)
  sizes = collections.Counter()
  for variable in [*model.variables, *model.optimizer.variables]:
    sizes[variable.value.device[-5:]] += variable.value.shape.num_elements() * 4
  model.save(folder / 'model.keras')
  print(
      json.dumps({
          'bytes': sizes, 'losses': history.history['loss'],
          'variables': len(model.variables),
          'shapes': [w.shape for w in model.get_weights()],
          'sums': [float(np.abs(w).sum()) for w in model.get_weights()],
          'parts': [
              part.value.device[-5:] for part in getattr(
                  model.get_layer('words').embeddings, 'parts', ())
          ], 'evaluated': model.evaluate(x, y, batch_size=16, verbose=0),
          'host_bytes': _HOST_BYTES, 'card_bytes': _CARD_BYTES
      }))


main()
