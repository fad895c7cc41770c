"""Models of many kinds in Keras' `fit`."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import tensorflow as tf

from benchmarks.equality import base

keras, layers = base.keras, base.layers


def _compiled() -> Any:
  return base.compiled(
      keras.Sequential(
          [layers.Input((8,)),
           layers.Dense(16, 'relu'),
           layers.Dense(3)]))


@base.program(legacy=True)
def sequential() -> base.Numbers:
  """Dense layers, momentum and a metric."""
  model = keras.Sequential([
      layers.Input((8,)),
      layers.Dense(24, 'relu'),
      layers.Dense(24, 'tanh'),
      layers.Dense(3)
  ])
  base.compiled(model, keras.optimizers.SGD(.05, momentum=.9, nesterov=True),
                metrics=['accuracy'])
  return base.fit(model, *base.data(70, 8))


@base.program(legacy=True)
def several_outputs() -> base.Numbers:
  """Two inputs, two weighted losses, weights of samples."""
  left, right = layers.Input((6,)), layers.Input((4,))
  joined = layers.concatenate(
      [layers.Dense(8, 'relu')(left),
       layers.Dense(8, 'relu')(right)])
  outputs = [
      layers.Dense(3, name='kind')(joined),
      layers.Dense(1, name='size')(joined)
  ]
  model = keras.Model([left, right], outputs)
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile('rmsprop', [loss, 'mse'], loss_weights=[1., .3])
  x, kind = base.data(48, 10)
  weights = np.linspace(.5, 1.5, 48)
  return base.fit(model, [x[:, :6], x[:, 6:]], [kind, x[:, :1]],
                  sample_weight=[weights, weights])


@base.program(legacy=True)
def subclassed() -> base.Numbers:
  """A subclass of `keras.Model` that uses a residual block twice."""

  class Residual(base.Model):

    def __init__(self) -> None:
      super().__init__()
      self.inner = layers.Dense(12, 'relu')
      self.norm = layers.LayerNormalization()
      self.begin, self.end = layers.Dense(12), layers.Dense(3)

    def call(self, x: Any, training: bool = False) -> Any:
      x = self.begin(x)
      for _ in range(2):
        x = self.norm(x + self.inner(x))
      return self.end(x)

  return base.fit(base.compiled(Residual()), *base.data(40, 8))


@base.program(legacy=True)
def convolutions() -> base.Numbers:
  """Two paths with batch normalization and pooling."""
  image = layers.Input((12, 12, 3))
  paths = []
  for width in (3, 5):
    x = layers.Conv2D(8, width, padding='same', use_bias=False)(image)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.SeparableConv2D(8, 3)(layers.MaxPooling2D()(x))
    paths.append(layers.GlobalAveragePooling2D()(x))
  model = keras.Model(image, layers.Dense(3)(layers.concatenate(paths)))
  return base.fit(base.compiled(model), *base.data(40, 12, 12, 3))


@base.program(legacy=True)
def dropouts() -> base.Numbers:
  """Dropout of units, dropout of feature maps, and noise."""
  model = keras.Sequential([
      layers.Input((8, 8, 2)),
      layers.Conv2D(8, 3, activation='relu'),
      layers.SpatialDropout2D(.3),
      layers.Flatten(),
      layers.GaussianNoise(.1),
      layers.Dropout(.2),
      layers.Dense(3)
  ])
  return base.fit(base.compiled(model), *base.data(40, 8, 8, 2))


@base.program(legacy=True)
def recurrent() -> base.Numbers:
  """Masked words, stacked LSTMs, and a bidirectional LSTM."""
  model = keras.Sequential([
      layers.Input((7,)),
      layers.Embedding(30, 8, mask_zero=True),
      layers.Bidirectional(layers.LSTM(6, return_sequences=True)),
      layers.LSTM(6, return_sequences=True, unroll=True),
      layers.GRU(5),
      layers.Dense(3)
  ])
  return base.fit(base.compiled(model), *base.words(40, 7, 30))


@base.program()
def stateful_recurrent() -> base.Numbers:
  """An LSTM whose state goes on from batch to batch."""
  model = keras.Sequential([
      layers.Input((5, 4), batch_size=16),
      layers.LSTM(6, stateful=True, return_sequences=True),
      layers.SimpleRNN(4),
      layers.Dense(3)
  ])
  return base.fit(base.compiled(model), *base.data(48, 5, 4))


@base.program(legacy=True)
def attention() -> base.Numbers:
  """An encoder with a causal mask."""
  ids = layers.Input((9,), dtype='int32')
  x = layers.Embedding(40, 8)(ids)
  for _ in range(2):
    attended = layers.MultiHeadAttention(2, 4)(x, x, use_causal_mask=True)
    x = layers.LayerNormalization()(layers.add([x, attended]))
    x = layers.add([x, layers.Dense(8)(layers.Dense(16, 'gelu')(x))])
  model = keras.Model(ids, layers.Dense(3)(x[:, -1]))
  return base.fit(base.compiled(model), *base.words(40, 9, 40))


@base.program(legacy=True)
def autoencoder() -> base.Numbers:
  """Convolutions down and up again."""
  image = layers.Input((8, 8, 1))
  x = layers.Conv2D(8, 3, strides=2, padding='same', activation='relu')(image)
  x = layers.Conv2DTranspose(8, 3, strides=2, padding='same')(x)
  x = layers.UpSampling2D()(layers.AveragePooling2D(2)(layers.PReLU()(x)))
  model = keras.Model(image, layers.Conv2D(1, 3, padding='same')(x))
  model.compile('adam', 'mae')
  x, _ = base.data(32, 8, 8, 1)
  return base.fit(model, x, x)


@base.program(legacy=True)
def embeddings() -> base.Numbers:
  """Gradients of a few rows of large tables."""
  users, items = layers.Input((3,), dtype='int32'), layers.Input((2,),
                                                                 dtype='int32')
  towers = [
      layers.Dense(6)(layers.Flatten()(layers.Embedding(500, 8)(ids)))
      for ids in (users, items)
  ]
  model = keras.Model([users, items], layers.Dot(axes=1)(towers))
  model.compile(keras.optimizers.Adagrad(.1), 'mse', metrics=['mae'])
  random = np.random.RandomState(0)
  return base.fit(
      model, [random.randint(0, 500, (40, 3)),
              random.randint(0, 500, (40, 2))],
      random.randn(40, 1).astype(np.float32))


@base.program(legacy=True)
def uneven_batches() -> base.Numbers:
  """A data set with a smaller last batch, and validation after each epoch."""
  batches = tf.data.Dataset.from_tensor_slices(base.data(45, 8)).batch(16)
  other = tf.data.Dataset.from_tensor_slices(base.data(10, 8, seed=1)).batch(4)
  return base.fit(_compiled(), batches, validation_data=other)


@base.program(legacy=True)
def generator() -> base.Numbers:
  """Batches of any size from Python."""
  x, y = base.data(60, 8)

  def batches() -> Any:
    for _ in range(3):
      for begin, end in ((0, 16), (16, 21), (21, 60)):
        yield x[begin:end], y[begin:end]

  model = _compiled()
  history = model.fit(batches(), steps_per_epoch=3, epochs=3, verbose=0)
  return history.history, base.variables(model)


def _mixed(policy: str) -> base.Numbers:
  keras.mixed_precision.set_global_policy(policy)
  try:
    model = keras.Sequential([
        layers.Input((10, 10, 3)),
        layers.Conv2D(8, 3, activation='relu'),
        layers.BatchNormalization(),
        layers.Flatten(),
        layers.Dense(16, 'relu'),
        layers.Dense(3, dtype='float32')
    ])
    return base.fit(base.compiled(model), *base.data(32, 10, 10, 3))
  finally:
    keras.mixed_precision.set_global_policy('float32')


@base.program(legacy=True)
def mixed_bfloat16() -> base.Numbers:
  """Computes in bfloat16."""
  return _mixed('mixed_bfloat16')


@base.program(legacy=True)
def mixed_float16() -> base.Numbers:
  """Computes in float16. Overflowing gradients change the scale of losses."""
  return _mixed('mixed_float16')


@base.program(legacy=True)
def preprocessing() -> base.Numbers:
  """Images that are rotated at random, and normalized numbers."""
  x, y = base.data(32, 8, 8, 1)
  norm = layers.Normalization()
  norm.adapt(x)
  model = keras.Sequential([
      layers.Input((8, 8, 1)), norm,
      layers.RandomFlip(seed=1),
      layers.RandomTranslation(.1, .1, seed=2),
      layers.Conv2D(4, 3),
      layers.GlobalMaxPooling2D(),
      layers.Dense(3)
  ])
  return base.fit(base.compiled(model), x, y)


@base.program(legacy=True)
def constraints() -> base.Numbers:
  """Regularizers of weights and activities, and constraints of weights."""
  model = keras.Sequential([
      layers.Input((8,)),
      layers.Dense(16, 'relu', kernel_regularizer='l2',
                   kernel_constraint=keras.constraints.MaxNorm(1.)),
      layers.ActivityRegularization(l1=.01),
      layers.Dense(3, bias_regularizer='l1')
  ])
  return base.fit(base.compiled(model), *base.data(40, 8))


@base.program(legacy=True)
def metrics() -> base.Numbers:
  """Metrics with much state, and weights of classes."""
  model = keras.Sequential([
      layers.Input((8,)),
      layers.Dense(16, 'relu'),
      layers.Dense(1, 'sigmoid')
  ])
  model.compile(
      'nadam', 'binary_crossentropy', metrics=[
          keras.metrics.AUC(num_thresholds=20),
          keras.metrics.Precision(),
          keras.metrics.Recall()
      ], weighted_metrics=['accuracy'])
  x, y = base.data(40, 8, classes=2)
  return base.fit(model, x, y.astype(np.float32), class_weight={0: 1., 1: 2.})


@base.program(legacy=True)
def resumed() -> base.Numbers:
  """Saved weights, which another model loads before it trains on."""
  first, second = _compiled(), _compiled()
  numbers, _ = base.fit(first, *base.data(40, 8))
  with tempfile.TemporaryDirectory() as folder:
    first.save_weights(f'{folder}/model.weights.h5')
    second.load_weights(f'{folder}/model.weights.h5')
  more, _ = base.fit(second, *base.data(40, 8))
  again, _ = base.fit(first, *base.data(40, 8))
  return [numbers, more, again], base.variables(first, second)
