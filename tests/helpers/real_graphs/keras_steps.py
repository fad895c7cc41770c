"""Training steps of Keras models."""

from __future__ import annotations

import tensorflow as tf

from helpers.real_graphs import base


def _train(model, optimizer, x, y):
  """A custom training loop over a Keras model."""
  model(x)
  optimizer.build(model.trainable_variables)

  @tf.function
  def step():
    with tf.GradientTape() as tape:
      loss = tf.reduce_mean((model(x, training=True) - y)**2)
    variables = model.trainable_variables
    optimizer.apply(tape.gradient(loss, variables), variables)
    return loss

  return step


@base.function
def dense_adam():
  k = tf.keras
  model = k.Sequential([k.layers.Dense(8, 'relu'), k.layers.Dense(1)])
  return _train(model, k.optimizers.Adam(), base.x(4, 8), base.x(4, 1))


@base.function
def cnn_batch_norm_momentum():
  k = tf.keras
  model = k.Sequential([
      k.layers.Conv2D(4, 3, activation='relu'),
      k.layers.BatchNormalization(),
      k.layers.MaxPooling2D(),
      k.layers.Dropout(0.3, seed=1),
      k.layers.Flatten(),
      k.layers.Dense(1)
  ])
  return _train(model, k.optimizers.SGD(0.01, 0.9), base.x(2, 8, 8, 3),
                base.x(2, 1))


@base.function
def lstm_rmsprop():
  k = tf.keras
  model = k.Sequential([
      k.layers.LSTM(4, return_sequences=True),
      k.layers.GRU(4, reset_after=False),
      k.layers.Dense(1)
  ])
  return _train(model, k.optimizers.RMSprop(), base.x(2, 5, 3), base.x(2, 1))


@base.function
def stacked_lstms():
  """Grappler merges the empty lists with which their loops begin.

  The weights come from outside of the loops, so that each may be anywhere.
  """
  lstms = [tf.keras.layers.LSTM(4, return_sequences=True) for _ in range(2)]
  for layer in lstms:
    layer.build((2, 5, 4))

  @tf.function
  def step(x=base.x(2, 5, 4)):
    weights = [
        [tf.identity(v) for v in layer.trainable_variables] for layer in lstms
    ]
    with tf.GradientTape() as tape:
      tape.watch(weights)
      for layer, values in zip(lstms, weights):
        x, _ = layer.stateless_call(values, layer.non_trainable_variables, x)
      loss = tf.reduce_mean(x**2)
    gradients = tape.gradient(loss, weights)
    for layer, parts in zip(lstms, gradients):
      for variable, gradient in zip(layer.trainable_variables, parts):
        variable.assign(variable - 0.5 * gradient)
    return loss, x

  return step


@base.function
def masked_embedding_lstm():
  k = tf.keras
  tokens = tf.constant([[1, 2, 3, 0], [4, 0, 0, 0]])
  model = k.Sequential([
      k.layers.Embedding(6, 3, mask_zero=True),
      k.layers.LSTM(3),
      k.layers.Dense(1)
  ])
  return _train(model, k.optimizers.Adagrad(), tokens, base.x(2, 1))


@base.function
def attention_adamw_ema():
  k = tf.keras
  x = k.Input((5, 4))
  h = k.layers.MultiHeadAttention(2, 2)(x, x)
  h = k.layers.LayerNormalization()(x + h)
  model = k.Model(x, k.layers.Dense(1)(k.layers.Flatten()(h)))
  optimizer = k.optimizers.AdamW(use_ema=True, clipnorm=1.0)
  return _train(model, optimizer, base.x(2, 5, 4), base.x(2, 1))
