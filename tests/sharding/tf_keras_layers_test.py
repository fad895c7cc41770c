"""Layers of tf_keras with tables in parts compute what whole ones do."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler.sharding import tf_keras_layers
from gdp_grappler.sharding import tf_keras_table
from helpers import word_tables

_ROWS = 31
_IDS = np.random.default_rng(0).integers(0, _ROWS, (8, 5))
_TARGETS = np.arange(8)
_LEGACY = tf_keras.optimizers.legacy
_OPTIMIZERS = {
    'sgd': tf_keras.optimizers.SGD, 'adam': tf_keras.optimizers.Adam,
    'adagrad': tf_keras.optimizers.Adagrad,
    'momentum': lambda: tf_keras.optimizers.SGD(.1, momentum=.9),
    'averaged': lambda: tf_keras.optimizers.RMSprop(use_ema=True),
    'legacy adam': _LEGACY.Adam
}
_TRACED = ('adam', 'legacy adam')


def _model():
  return tf_keras.Sequential([
      tf_keras.Input((5,), dtype='int32'),
      word_tables.words(tf_keras),
      tf_keras.layers.Flatten(),
      tf_keras.layers.Dense(_ROWS, name='head')
  ])


@pytest.mark.parametrize('optimizer', _OPTIMIZERS)
def test_a_model_trains_as_with_whole_tables(optimizer):
  found = []
  for parts in (0, 3):
    model = word_tables.made(tf_keras, parts, _model)
    assert len(model.variables) == 3 + 2 * max(parts - 1, 0)
    model.compile(
        _OPTIMIZERS[optimizer](),
        tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        # Those traced are for all: tracing costs more than the few steps.
        run_eagerly=optimizer not in _TRACED)
    history = model.fit(_IDS, _TARGETS, batch_size=4, epochs=2, verbose=0,
                        shuffle=False)
    found.append((history.history['loss'], model.get_weights()))
  np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
  # A product in parts may round differently.
  for one, other in zip(found[0][1], found[1][1], strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


def test_lookups_and_their_gradients_have_the_same_bits():
  found = []
  for parts in (0, 3):
    layer = word_tables.made(tf_keras, parts, word_tables.words, tf_keras)
    optimizer = tf_keras.optimizers.Adam()
    for _ in range(3):
      with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.sin(layer(_IDS)))
      variables = layer.trainable_variables
      gradients = tape.gradient(loss, variables)
      assert all(isinstance(g, tf.IndexedSlices) for g in gradients)
      optimizer.apply_gradients(zip(gradients, variables))
    found.append(layer.get_weights()[0])
  np.testing.assert_array_equal(*found)


@pytest.mark.parametrize('inputs', [
    tf.reshape(tf.range(30.), (2, 3, 5)),
    tf.RaggedTensor.from_row_lengths(tf.reshape(tf.range(15.), (3, 5)), [1, 2]),
    tf.sparse.from_dense([[0., 2., 0., 0., 1.]])
], ids=['three dimensions', 'ragged', 'sparse'])
def test_all_kinds_of_inputs_are_multiplied(inputs):
  found = [
      word_tables.made(tf_keras, parts, word_tables.head, tf_keras,
                       activation='tanh')(inputs) for parts in (0, 3)
  ]
  if isinstance(found[0], tf.RaggedTensor):
    found = [result.flat_values for result in found]
  np.testing.assert_allclose(*found, rtol=1e-5)


def test_other_weights_of_a_layer_are_whole():
  layer = word_tables.made(tf_keras, 3, word_tables.head, tf_keras)
  assert isinstance(layer.kernel, tf_keras_table.Table)
  assert isinstance(layer.bias, tf.Variable)


def test_a_kernel_of_a_subclass_is_read_once():
  """It may be drawn anew at each read, and a read too many changes numbers."""
  reads = []

  class Drawn(tf_keras.layers.Dense):

    @property
    def kernel(self):
      reads.append(self.name)
      return tf.ones((3, 4))

    def build(self, input_shape):
      self.built = True

  tf_keras_layers.install()
  Drawn(4, use_bias=False)(tf.ones((2, 3)))
  assert len(reads) == 1
