"""Small Keras models with ops that Grappler rewrites for CPUs."""

from __future__ import annotations

import keras

layers = keras.layers


def denoiser() -> keras.Model:
  """A step of diffusion: convolutions, SiLU, group norm, attention."""
  image = keras.Input((16, 16, 3), batch_size=2)
  hidden = layers.Conv2D(16, 3, padding='same')(image)
  skip = _residual(hidden)
  hidden = layers.Conv2D(16, 3, strides=2, padding='same')(skip)
  flat = layers.Reshape((64, 16))(layers.GroupNormalization(4)(hidden))
  attended = layers.MultiHeadAttention(2, 8)(flat, flat)
  hidden = _residual(hidden + layers.Reshape((8, 8, 16))(attended))
  hidden = layers.Concatenate()([layers.UpSampling2D(2)(hidden), skip])
  hidden = keras.ops.silu(layers.GroupNormalization(4)(hidden))
  model = keras.Model(image, layers.Conv2D(3, 3, padding='same')(hidden))
  model.compile(keras.optimizers.SGD(.01, momentum=.9), 'mse')
  return model


def _residual(hidden: keras.KerasTensor) -> keras.KerasTensor:
  wide = layers.Conv2D(16, 3, padding='same')(keras.ops.silu(
      layers.GroupNormalization(4)(hidden)))
  return hidden + wide


def gelu_encoder() -> keras.Model:
  """Both forms of GELU, the exact one being Keras' default."""
  words = keras.Input((8,), batch_size=2, dtype='int32')
  hidden = layers.Embedding(50, 16)(words)
  for approximate in (False, True):
    wide = layers.Dense(32)(layers.LayerNormalization()(hidden))
    wide = keras.ops.gelu(wide, approximate=approximate)
    hidden = hidden + layers.Dense(16)(wide)
  model = keras.Model(words, layers.Dense(50)(hidden))
  model.compile('adam',
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def inverted_bottleneck() -> keras.Model:
  """A block of an EfficientNet: depthwise, swish, a gate for channels."""
  image = keras.Input((16, 16, 3), batch_size=2)
  hidden = image
  for strides in (1, 2):
    hidden = layers.Conv2D(12, 1, use_bias=False)(hidden)
    hidden = layers.Activation('swish')(layers.BatchNormalization()(hidden))
    hidden = layers.DepthwiseConv2D(3, strides, padding='same')(hidden)
    hidden = layers.Activation('swish')(layers.BatchNormalization()(hidden))
    gate = layers.GlobalAveragePooling2D(keepdims=True)(hidden)
    gate = layers.Conv2D(3, 1, activation='swish')(gate)
    hidden = hidden * layers.Conv2D(12, 1, activation='sigmoid')(gate)
  pooled = layers.GlobalAveragePooling2D()(hidden)
  model = keras.Model(image, layers.Dense(5, 'softmax')(pooled))
  model.compile('adam', 'sparse_categorical_crossentropy')
  return model


def recurrent() -> keras.Model:
  """Recurrent layers with kernels of cuDNN, and one without such a kernel."""
  words = keras.Input((6,), batch_size=2, dtype='int32')
  hidden = layers.Embedding(50, 8)(words)
  hidden = layers.LSTM(8, return_sequences=True)(hidden)
  hidden = layers.GRU(8, return_sequences=True)(hidden)
  hidden = layers.LSTM(8, recurrent_dropout=.1)(hidden)
  model = keras.Model(words, layers.Dense(50)(hidden))
  model.compile('sgd', keras.losses.SparseCategoricalCrossentropy())
  return model
