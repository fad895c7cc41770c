"""Compiled Keras models whose steps several devices can share.

The functions have no arguments, so `benchmarks.keras_models:NAME` names a graph
for every program. The batch size of each model is known.
"""

from __future__ import annotations

import keras

layers = keras.layers


def cnn() -> keras.Model:
  """Two towers of convolutions that meet before the last layer."""
  image = keras.Input((32, 32, 3), batch_size=64)
  towers = [_tower(image, width) for width in (5, 3)]
  return _classifier(image, layers.Concatenate()(towers), 10)


def mlp() -> keras.Model:
  """Two branches of large dense layers: 437 MB of weights."""
  features = keras.Input((1024,), batch_size=256)
  branches = [_dense(features, 4096, 4) for _ in range(2)]
  return _classifier(features, layers.Concatenate()(branches), 10)


def lstm() -> keras.Model:
  """Four stacked recurrent layers."""
  words = keras.Input((48,), batch_size=64, dtype='int32')
  hidden = layers.Embedding(4000, 512)(words)
  for _ in range(4):
    hidden = layers.LSTM(512, return_sequences=True)(hidden)
  return _classifier(words, hidden, 4000)


def transformer() -> keras.Model:
  """An encoder of four blocks with a large vocabulary."""
  words = keras.Input((128,), batch_size=32, dtype='int32')
  hidden = layers.Embedding(20_000, 512)(words)
  for _ in range(4):
    attended = layers.MultiHeadAttention(8, 64)(hidden, hidden)
    hidden = layers.LayerNormalization()(hidden + attended)
    wide = layers.Dense(2048, 'gelu')(hidden)
    hidden = layers.LayerNormalization()(hidden + layers.Dense(512)(wide))
  return _classifier(words, hidden, 20_000)


def experts() -> keras.Model:
  """A mixture of six perceptrons. A gate weights all of them."""
  features = keras.Input((1024,), batch_size=512)
  gate = layers.Dense(6, 'softmax')(features)
  outputs = [_dense(features, 2048, 2) for _ in range(6)]
  stacked = keras.ops.stack(outputs, axis=1)
  return _classifier(features, keras.ops.sum(stacked * gate[..., None], axis=1),
                     100)


def two_towers() -> keras.Model:
  """Embeddings and a tower for users and for items, scored by a product."""
  ids = [keras.Input((20,), batch_size=512, dtype='int32') for _ in range(2)]
  vectors = []
  for words, size in zip(ids, (200_000, 100_000)):
    pooled = layers.GlobalAveragePooling1D()(layers.Embedding(size, 128)(words))
    vectors.append(layers.Dense(128)(_dense(pooled, 2048, 3)))
  score = layers.Dot(axes=1)(vectors)
  model = keras.Model(ids, layers.Activation('sigmoid')(score))
  model.compile('adam', 'binary_crossentropy')
  return model


def translator() -> keras.Model:
  """A recurrent encoder, and a decoder that attends to it, step by step."""
  source, target = (
      keras.Input((40,), batch_size=32, dtype='int32') for _ in range(2))
  words = layers.Embedding(8000, 512)(source)
  encoded, *state = _steps(512, return_state=True)(words)
  words = layers.Embedding(8000, 512)(target)
  decoded = _steps(512)(words, initial_state=state)
  attended = layers.Attention()([decoded, encoded])
  return _classifier([source, target],
                     layers.Concatenate()([decoded, attended]), 8000)


def language_model() -> keras.Model:
  """Four wide recurrent layers, step by step."""
  words = keras.Input((35,), batch_size=20, dtype='int32')
  hidden = layers.Embedding(10_000, 1500)(words)
  for _ in range(4):
    hidden = _steps(1500)(hidden)
  return _classifier(words, hidden, 10_000)


def recognizer() -> keras.Model:
  """Three recurrent layers that read from both ends, step by step."""
  sounds = hidden = keras.Input((50, 128), batch_size=64)
  for _ in range(3):
    hidden = layers.Bidirectional(
        layers.GRU(384, return_sequences=True, unroll=True))(hidden)
  return _classifier(sounds, hidden, 64)


def unet() -> keras.Model:
  """Convolutions down to an eighth of the image and up again, with skips."""
  image = hidden = keras.Input((128, 128, 3), batch_size=16)
  skips = []
  for filters in (64, 128, 256):
    skips.append(_convolutions(hidden, filters))
    hidden = layers.MaxPooling2D()(skips[-1])
  hidden = _convolutions(hidden, 512)
  for skip in reversed(skips):
    up = layers.Conv2DTranspose(skip.shape[-1], 2, strides=2)(hidden)
    hidden = _convolutions(layers.Concatenate()([up, skip]), skip.shape[-1])
  return _classifier(image, hidden, 2)


def _steps(units: int, **options: bool) -> keras.layers.LSTM:
  """A recurrent layer whose time steps are ops of their own, not a loop."""
  return layers.LSTM(units, return_sequences=True, unroll=True, **options)


def _convolutions(image: keras.KerasTensor, filters: int) -> keras.KerasTensor:
  for _ in range(2):
    image = layers.Conv2D(filters, 3, padding='same', activation='relu')(image)
  return image


def _tower(image: keras.KerasTensor, width: int) -> keras.KerasTensor:
  """Adds convolutions of a width, and pools the image."""
  hidden = image
  for filters in (64, 128, 256):
    for _ in range(2):
      hidden = layers.Conv2D(filters, width, padding='same',
                             use_bias=False)(hidden)
      hidden = layers.ReLU()(layers.BatchNormalization()(hidden))
    hidden = layers.MaxPooling2D()(hidden)
  return layers.GlobalAveragePooling2D()(hidden)


def _dense(features: keras.KerasTensor, units: int,
           depth: int) -> keras.KerasTensor:
  for _ in range(depth):
    features = layers.Dense(units, 'relu')(features)
  return features


def _classifier(inputs: keras.KerasTensor | list[keras.KerasTensor],
                hidden: keras.KerasTensor, classes: int) -> keras.Model:
  model = keras.Model(inputs, layers.Dense(classes)(hidden))
  model.compile('adam',
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model
