"""More models whose steps are measured; see also `benchmarks.keras_models`."""

from __future__ import annotations

from typing import Any

import keras

layers = keras.layers
_CLASSES = 1000  # Classes of ImageNet.
# Size of a recommender's embeddings.
_VECTOR = 64
# Number of experts of the mixture.
_EXPERTS = 8
_WIDTH = 256  # Size of a token's vector in the mixture.


def resnet50() -> keras.Model:
  """ResNet50 with batches of 64."""
  return _of_images(keras.applications.ResNet50, 224, 64)


def mobilenet() -> keras.Model:
  """Depthwise convolutions, with batches of 64."""
  return _of_images(keras.applications.MobileNet, 224, 64)


def vgg16() -> keras.Model:
  """Large convolutions and large products, with batches of 32."""
  return _of_images(keras.applications.VGG16, 224, 32)


def nasnet() -> keras.Model:
  """Many small parallel convolutions, with batches of 8."""
  return _of_images(keras.applications.NASNetMobile, 224, 8)


def recommender(batch: int = 2048, rows: int = 200_000) -> keras.Model:
  """DLRM: eight tables of embeddings, and products of their vectors."""
  ids = [keras.Input((1,), batch, dtype='int32') for _ in range(8)]
  numbers = keras.Input((13,), batch)
  vectors = [
      layers.Flatten()(layers.Embedding(rows, _VECTOR)(words)) for words in ids
  ]
  vectors.append(_dense(numbers, (512, 256, _VECTOR)))
  stacked = keras.ops.stack(vectors, axis=1)
  products = keras.ops.matmul(stacked, keras.ops.transpose(stacked, (0, 2, 1)))
  features = layers.Concatenate()([vectors[-1], layers.Flatten()(products)])
  score = layers.Dense(1, 'sigmoid')(_dense(features, (1024, 512, 256)))
  model = keras.Model([*ids, numbers], score)
  model.compile('adam', 'binary_crossentropy')
  return model


def small_recommender() -> keras.Model:
  """For machines without a card."""
  return recommender(64, 1000)


def mixture(blocks: int = 4, words: int = 8000) -> keras.Model:
  """A transformer whose every block has eight experts, weighted by a gate."""
  tokens = keras.Input((64,), 16, dtype='int32')
  hidden = layers.Embedding(words, _WIDTH)(tokens)
  for _ in range(blocks):
    attended = layers.MultiHeadAttention(4, _WIDTH // 4)(hidden, hidden)
    hidden = layers.LayerNormalization()(hidden + attended)
    hidden = layers.LayerNormalization()(hidden + _experts(hidden))
  model = keras.Model(tokens, layers.Dense(words)(hidden))
  model.compile('adam',
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def small_mixture() -> keras.Model:
  """For machines without a card."""
  return mixture(1, 100)


def _experts(hidden: keras.KerasTensor) -> keras.KerasTensor:
  gate = layers.Dense(_EXPERTS, 'softmax')(hidden)
  outputs = [
      layers.Dense(_WIDTH)(layers.Dense(2 * _WIDTH, 'gelu')(hidden))
      for _ in range(_EXPERTS)
  ]
  stacked = keras.ops.stack(outputs, axis=-2)
  return keras.ops.sum(stacked * gate[..., None], axis=-2)


def _dense(features: keras.KerasTensor,
           several_units: tuple[int, ...]) -> keras.KerasTensor:
  for units in several_units:
    features = layers.Dense(units, 'relu')(features)
  return features


def _of_images(application: Any, side: int, batch: int) -> keras.Model:
  model = application(
      weights=None, classes=_CLASSES, input_tensor=keras.Input(
          (side, side, 3), batch_size=batch))
  model.compile('sgd', keras.losses.SparseCategoricalCrossentropy())
  return model
