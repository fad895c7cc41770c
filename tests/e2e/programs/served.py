"""Inference over two devices: predict, a `tf.function`, and a SavedModel.

Each runs without the option first. Two logical CPUs replace the logical GPUs
into which the option `split` cuts a card.
"""

import os
import tempfile

import common
import numpy as np
import tensorflow as tf

import gdp_grappler

common.make_devices(2)
keras = tf.keras
layers = keras.layers
# Every op that may move goes to another device than the one before it.
_OPTION = {'placer': 'round_robin', 'keep_best': False}
X = np.random.default_rng(0).normal(size=(16, 8)).astype('f')


def _model():
  keras.utils.set_random_seed(0)
  inputs = keras.Input((8,))
  towers = []
  for i in range(2):
    tower = inputs
    for j in range(3):
      tower = layers.Dense(8, 'tanh', name=f'tower_{i}_{j}')(tower)
    towers.append(tower)
  model = keras.Model(inputs, layers.Dense(2)(layers.Add()(towers)))
  model.compile('sgd', 'mse', jit_compile=False)
  return model


def _both(call):
  """Returns results without and with the option, and devices of the latter."""
  common.set_option(False)
  stock = np.asarray(call())
  common.set_option(_OPTION)
  placed, devices = common.devices_used(call)
  return {
      'equal': bool((np.asarray(placed) == stock).all()), 'devices': devices
  }


def _served(folder):
  """Calls a signature with weights on their first and on other devices."""
  loaded = tf.saved_model.load(folder)
  signature = loaded.signatures['serving_default']
  name, = signature.structured_input_signature[1]

  def serve():
    result, = signature(**{name: tf.constant(X)}).values()
    return result

  found = _both(serve)
  before = np.asarray(serve())
  variables = loaded.variables
  moved = gdp_grappler.relocate(
      variables, {v.name: 'CPU:1' for v in variables if 'tower_1' in v.name})
  after, devices = common.devices_used(serve)
  return found, {
      'equal': bool((np.asarray(after) == before).all()), 'devices': devices,
      'moved': moved
  }


def _fitted(model):
  """Calls `predict` after `fit` has moved weights; last without the option."""
  common.set_option(_OPTION)
  model.fit(X, X[:, :2], verbose=0)
  placed, devices = common.devices_used(lambda: model.predict(X, verbose=0))
  common.set_option(False)
  stock = model.predict(X, verbose=0)
  return {'equal': bool((placed == stock).all()), 'devices': devices}


def main():
  handler = common.Lines()
  logger = common.logging.getLogger('gdp_grappler')
  logger.addHandler(handler)
  logger.setLevel('INFO')
  model = _model()
  results = {'predict': _both(lambda: model.predict(X, verbose=0))}
  results['function'] = _both(lambda: tf.function(model)(tf.constant(X)))
  with tempfile.TemporaryDirectory() as top:
    folder = os.path.join(top, 'model')
    model.export(folder)
    results['signature'], results['relocated'] = _served(folder)
  results['fitted'] = _fitted(model)
  common.finish(lines=handler.take(), **results)


if __name__ == '__main__':
  main()
