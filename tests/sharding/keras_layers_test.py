"""Layers of either Keras with tables in parts compute what whole ones do."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler import errors
from gdp_grappler.sharding import table as table_lib
from helpers import word_tables

_ROWS, _WIDTH = 31, 6
_IDS = np.random.default_rng(0).integers(0, _ROWS, (8, 5))


@pytest.fixture(params=[keras, tf_keras], ids=['keras', 'tf_keras'], name='api')
def _api(request):
  return request.param


def _embedding():
  return keras.Sequential([
      keras.Input((5,), dtype='int32'),
      keras.layers.Embedding(_ROWS, _WIDTH, name='words'),
      keras.layers.Flatten(),
      keras.layers.Dense(3)
  ])


def _dense():
  return keras.Sequential([
      keras.Input((5,)),
      keras.layers.Dense(_ROWS, name='head', activation='softmax')
  ])


class Tied(keras.Model):
  """A language model in small, with one table at both ends."""

  def __init__(self):
    super().__init__()
    self.words = keras.layers.ReversibleEmbedding(_ROWS, _WIDTH, name='words',
                                                  logit_soft_cap=5.)

  def call(self, ids):
    return self.words(keras.ops.tanh(self.words(ids)), reverse=True)


@pytest.mark.parametrize('optimizer', [
    'sgd', 'adam', 'adagrad', 'rmsprop',
    lambda: keras.optimizers.SGD(.1, momentum=.9)
], ids=['sgd', 'adam', 'adagrad', 'rmsprop', 'momentum'])
def test_an_embedding_trains_to_the_same_bits(optimizer):
  found = []
  for parts in (0, 3):
    model = word_tables.made(keras, parts, _embedding)
    # The one traced is for all: tracing costs more than the few steps.
    model.compile(optimizer() if callable(optimizer) else optimizer, 'mse',
                  run_eagerly=optimizer != 'adam')
    history = model.fit(_IDS, np.ones((8, 3)), batch_size=4, epochs=2,
                        verbose=0, shuffle=False)
    found.append((history.history['loss'], model.get_weights(),
                  model.predict(_IDS, verbose=0)))
    assert len(model.variables) == 3 + max(parts - 1, 0)
  (loss, weights, outputs), (loss_2, weights_2, outputs_2) = found
  assert loss == loss_2
  np.testing.assert_array_equal(outputs, outputs_2)
  for one, other in zip(weights, weights_2, strict=True):
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('make, inputs, targets', [(_dense, np.ones(
    (8, 5)) * np.arange(8)[:, None] / 9, np.arange(8)), (Tied, _IDS, _IDS)],
                         ids=['dense', 'tied'])
def test_products_are_the_same_but_for_rounding(make, inputs, targets):
  found = []
  for parts in (0, 4):

    def build():
      model = make()
      model(inputs[:1])
      return model

    model = word_tables.made(keras, parts, build)
    model.compile(
        'adam',
        keras.losses.SparseCategoricalCrossentropy(from_logits=make is Tied),
        # One traced model is enough for both.
        run_eagerly=make is not Tied)
    history = model.fit(inputs, targets, batch_size=4, epochs=2, verbose=0,
                        shuffle=False)
    found.append((history.history['loss'], model.get_weights()))
    assert any(
        isinstance(w, table_lib.Table)
        for w in table_lib.joined(model.weights)) == bool(parts)
  np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
  for one, other in zip(found[0][1], found[1][1], strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def test_gradients_of_parts_have_their_rows_alone():
  model = word_tables.made(keras, 3, _embedding)
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(_IDS))
  parts = model.get_layer('words').embeddings.parts
  gradients = tape.gradient(loss, [part.value for part in parts])
  assert all(isinstance(g, tf.IndexedSlices) for g in gradients)
  assert sum(len(g.indices) for g in gradients) == _IDS.size


def _assert_looked_up(api, ids):
  one, other = [
      word_tables.made(api, parts, word_tables.words, api)(ids)
      for parts in (0, 3)
  ]
  if isinstance(one, tf.RaggedTensor):
    one, other = one.values, other.values
  np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('ids', [
    tf.ragged.constant([[1, 2], [30]]),
    tf.sparse.from_dense([[1, 0, 30]]),
    np.array([[1., 30.]])
], ids=['ragged', 'sparse', 'float'])
def test_all_kinds_of_numbers_are_looked_up(api, ids):
  _assert_looked_up(api, ids)


def test_negative_numbers_are_looked_up():
  _assert_looked_up(keras, np.array([[-1, 3]]))


@pytest.mark.parametrize('make', [word_tables.words, word_tables.head])
def test_a_table_has_the_initial_value_of_the_whole(api, make):
  word_tables.assert_equal(
      *(word_tables.made(api, parts, make, api) for parts in (0, 4)))


@pytest.mark.parametrize('how', [
    lambda api: {'embeddings_constraint': 'max_norm'}, lambda api:
    {'embeddings_regularizer': api.regularizers.OrthogonalRegularizer()}
], ids=['constraint', 'regularizer'])
def test_what_looks_at_the_whole_is_not_split(api, how):
  with pytest.raises(errors.GdpError, match='may look at the whole'):
    word_tables.made(api, 2, word_tables.words, api, **how(api))


def test_what_sums_up_is_split(api):
  losses = [
      sum(
          word_tables.made(api, parts, word_tables.words, api,
                           embeddings_regularizer='l2',
                           embeddings_constraint='non_neg').losses)
      for parts in (0, 2)
  ]
  np.testing.assert_allclose(*losses, rtol=1e-6)


def test_a_layer_with_a_call_of_its_own_is_not_split(api):

  class Own(api.layers.Embedding):

    def call(self, inputs):
      return tf.gather(self.embeddings, inputs) + 1.

  with word_tables.scope(2), pytest.raises(errors.GdpError,
                                           match='its own `call`'):
    Own(_ROWS, _WIDTH, name='words').build(None)


def test_a_base_class_behind_a_layer_adds_its_weights(api):
  """`add_weight` of such a class was skipped, so weights had other values."""

  class Ones(api.layers.Layer):

    def add_weight(self, *args, **how):
      return super().add_weight(*args, **{**how, 'initializer': 'ones'})

  class Own(api.layers.Dense, Ones):
    pass

  with word_tables.scope(2), pytest.raises(errors.GdpError,
                                           match='its own `add_weight`'):
    Own(4, name='head').build((None, 3))
  layer = Own(4)
  layer.build((None, 3))
  np.testing.assert_array_equal(layer.kernel, np.ones((3, 4)))


@pytest.mark.parametrize('make, inputs', [(word_tables.head, np.ones(
    (2, 5), 'f')), (word_tables.words, _IDS)], ids=['head', 'words'])
def test_mixed_precision_is_as_of_the_whole(api, make, inputs):
  one, other = [
      word_tables.made(api, parts, make, api, dtype='mixed_float16')(inputs)
      for parts in (0, 3)
  ]
  assert one.dtype == other.dtype == tf.float16
  np.testing.assert_array_equal(one, other)
