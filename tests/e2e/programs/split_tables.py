"""Trains a model whose table no card can hold; FOLDER [off|whole|mapped].

The cards are logical CPUs with small memories in a cluster file. Keras is Keras
3, or tf_keras with TF_USE_LEGACY_KERAS=1. "whole" forbids to split the table.
"mapped" gives each part a device.
"""

import collections
import json
import pathlib
import sys

import numpy as np
import small_memories
import tensorflow as tf

_CARD_BYTES = 5_500_000
_HOST_BYTES = 3_000_000
_ROWS, _WIDTH = 20_000, 32
keras = tf.keras


def _option(folder):
  if sys.argv[2:] == ['whole']:
    return {'split_tables': {'words': 3}, 'cache': False}
  if sys.argv[2:] == ['mapped']:
    layers = {
        'words': 'CPU:2', 'words/embeddings_part_0': 'CPU:0',
        '*_part_1': 'CPU:1'
    }
    return {'split_tables': {'words': 3}, 'cache': False, 'plan': layers}
  # A quick placer, which also keeps the limits of memories.
  cluster = small_memories.write(folder, _HOST_BYTES, _CARD_BYTES)
  return {'cluster': cluster, 'cache': False, 'placer': 'm_etf'}


def _model():
  constraint = 'max_norm' if sys.argv[2:] == ['whole'] else None
  keras.utils.set_random_seed(1)
  model = keras.Sequential([
      keras.Input((8,), batch_size=16, dtype='int32'),
      keras.layers.Embedding(_ROWS, _WIDTH, name='words',
                             embeddings_constraint=constraint),
      keras.layers.Flatten(),
      keras.layers.Dense(4)
  ])
  model.compile('adam', 'mse', jit_compile=False)
  return model


def _raw(variables):
  """Returns TensorFlow's variables of either Keras; parts of tables singly."""
  for variable in variables:
    for part in getattr(variable, 'parts', [variable]):
      yield part if isinstance(part, tf.Variable) else part.value


def main():
  folder = pathlib.Path(sys.argv[1])
  tf.config.set_logical_device_configuration(
      tf.config.list_physical_devices('CPU')[0],
      [tf.config.LogicalDeviceConfiguration()] * 3)
  if sys.argv[2:] != ['off']:
    tf.config.optimizer.set_experimental_options(
        {'gdp_placement': _option(folder)})
  model = _model()
  x = np.random.default_rng(0).integers(0, _ROWS, (64, 8))
  y = np.zeros((64, 4), 'f')
  history = model.fit(x, y, batch_size=16, epochs=2, verbose=0, shuffle=False)
  sizes = collections.Counter()
  for variable in _raw([*model.variables, *model.optimizer.variables]):
    sizes[variable.device[-5:]] += variable.shape.num_elements() * 4
  model.save(folder / 'model.keras')
  loaded = keras.models.load_model(folder / 'model.keras')
  path = tf.train.Checkpoint(model).save(str(folder / 'checkpoint'))
  print(
      json.dumps({
          'bytes': sizes, 'losses': history.history['loss'],
          'variables': len(model.variables
                          ), 'shapes': [w.shape for w in model.get_weights()],
          'sums': [float(np.abs(w).sum()) for w in model.get_weights()],
          'loaded': [float(np.abs(w).sum()) for w in loaded.get_weights()],
          'checkpoint': tf.train.list_variables(path), 'parts': [
              part.device[-5:] for part in _raw(
                  getattr(model.get_layer('words').embeddings, 'parts', ()))
          ], 'evaluated': model.evaluate(x, y, batch_size=16, verbose=0),
          'host_bytes': _HOST_BYTES, 'card_bytes': _CARD_BYTES
      }))


main()
