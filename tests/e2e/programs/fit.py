"""Trains small models with and without placement.

A user's program: it does not import this package.
"""

import os
import sys

import common
import numpy as np

common.make_devices()
if os.environ.get('TF_USE_LEGACY_KERAS'):
  import tf_keras as keras
else:
  import keras

layers = keras.layers


def cnn():
  return keras.Sequential([
      layers.Input((8, 8, 3)),
      layers.Conv2D(8, 3, padding='same'),
      layers.BatchNormalization(),
      layers.ReLU(),
      layers.MaxPooling2D(),
      layers.Flatten(),
      layers.Dense(4)
  ])


def lstm():
  return keras.Sequential(
      [layers.Input((6, 5)),
       layers.LSTM(8), layers.Dense(4)])


def transformer():
  inputs = layers.Input((6, 8))
  attended = layers.MultiHeadAttention(2, 4)(inputs, inputs)
  x = layers.LayerNormalization()(layers.add([inputs, attended]))
  dense_1 = layers.Dense(16, 'gelu')(x)
  x = layers.LayerNormalization()(layers.add([x, layers.Dense(8)(dense_1)]))
  return keras.Model(inputs,
                     layers.Dense(4)(layers.GlobalAveragePooling1D()(x)))


# The layers of the transformer have other implementations in Keras 2.
MODELS = (cnn, lstm) + (
    (transformer,) if keras.__version__.startswith('3.') else ())


def compiled(build):
  keras.utils.set_random_seed(0)
  model = build()
  model.compile(keras.optimizers.Adam(0.01),
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def data(model):
  random = np.random.RandomState(0)
  x = random.randn(64, *model.input_shape[1:]).astype(np.float32)
  return x, random.randint(0, 4, 64)


def reset(model, weights):
  """Restores the first weights, and clears the slots of the optimizer."""
  model.set_weights(weights)
  slots = model.optimizer.variables
  for variable in slots() if callable(slots) else slots:
    if 'learning_rate' not in variable.name:
      variable.assign(variable * 0)


def losses(build):
  """Returns losses with placement, and without placement from equal weights.

  The second run does not trace again.
  """
  common.set_option(common.RANDOM)
  model = compiled(build)
  weights = model.get_weights()
  x, y = data(model)

  def fitted():
    history, devices = common.devices_used(lambda: model.fit(
        x, y, epochs=2, batch_size=16, verbose=0, shuffle=False))
    return history.history['loss'], devices

  placed, devices = fitted()
  common.set_option(False)
  reset(model, weights)
  stock, stock_devices = fitted()
  return {
      'stock': stock, 'placed': placed, 'devices': devices,
      'stock_devices': stock_devices
  }


def made_anew(build):
  """Returns losses of a model that was made and traced without the option."""
  common.set_option(False)
  model = compiled(build)
  return model.fit(*data(model), epochs=2, batch_size=16, verbose=0,
                   shuffle=False).history['loss']


def inference():
  """Runs inference with placement, then without, by functions traced once."""
  model = compiled(cnn)
  x, y = data(model)

  def both_calls(option):
    common.set_option(option)
    loss, evaluate = common.devices_used(
        lambda: model.evaluate(x, y, batch_size=16, verbose=0))
    labels, predict = common.devices_used(
        lambda: model.predict(x, batch_size=16, verbose=0))
    return {
        'loss': float(loss), 'labels': labels.argmax(-1).tolist(),
        'evaluate': evaluate, 'predict': predict
    }

  return [both_calls(option) for option in (common.RANDOM, False)][::-1]


def main():
  results = {build.__name__: losses(build) for build in MODELS}
  first, *_ = MODELS
  results[first.__name__]['made_anew'] = made_anew(first)
  forbidden = ('tf_agents', 'tensorflow_gnn', 'tensorflow_probability',
               'tf_keras', 'placer_model')
  common.finish(fit=results, inference=inference(), keras=keras.__version__,
                imported=[name for name in forbidden if name in sys.modules])


if __name__ == '__main__':
  main()
