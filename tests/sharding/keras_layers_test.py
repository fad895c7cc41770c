"""Layers with tables in parts compute what whole ones do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.sharding import table as table_lib
from helpers import word_tables

_ROWS, _WIDTH = 31, 6
_IDS = np.random.default_rng(0).integers(0, _ROWS, (8, 5))


def _made(make, parts):
  keras.utils.set_random_seed(7)
  with word_tables.scope(parts):
    return make()


def _embedding(**how):
  return keras.Sequential([
      keras.Input((5,), dtype='int32'),
      keras.layers.Embedding(_ROWS, _WIDTH, name='words', **how),
      keras.layers.Flatten(),
      keras.layers.Dense(3)
  ])


def _dense(**how):
  return keras.Sequential([
      keras.Input((5,)),
      keras.layers.Dense(_ROWS, name='head', activation='softmax', **how)
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
    model = _made(_embedding, parts)
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

    model = _made(build, parts)
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
  model = _made(_embedding, 3)
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(_IDS))
  parts = model.get_layer('words').embeddings.parts
  gradients = tape.gradient(loss, [part.value for part in parts])
  assert all(isinstance(g, tf.IndexedSlices) for g in gradients)
  assert sum(len(g.indices) for g in gradients) == _IDS.size


@pytest.mark.parametrize('ids', [
    tf.ragged.constant([[1, 2], [30]]),
    tf.sparse.from_dense([[1, 0, 30]]),
    np.array([[-1, 3]]),
    np.array([[1., 30.]])
], ids=['ragged', 'sparse', 'negative', 'float'])
def test_all_kinds_of_numbers_are_looked_up(ids):
  whole, parts = [
      keras.layers.Embedding(_ROWS, _WIDTH, name='words') for _ in range(2)
  ]
  with gdp_grappler.split_tables({'words': 3}):
    parts.build()
  parts.set_weights([np.random.default_rng(1).normal(size=(_ROWS, _WIDTH))])
  whole.build()
  whole.set_weights(parts.get_weights())
  one, other = whole(ids), parts(ids)
  if isinstance(one, tf.RaggedTensor):
    one, other = one.values, other.values
  np.testing.assert_array_equal(one, other)


def test_a_table_has_the_initial_value_of_the_whole():
  for make in (_embedding, _dense):
    whole, parts = _made(make, 0), _made(make, 4)
    for one, other in zip(whole.get_weights(), parts.get_weights(),
                          strict=True):
      np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize('how', [{'embeddings_constraint': 'max_norm'},
                                 {'embeddings_regularizer': 'orthogonal'}])
def test_what_looks_at_the_whole_is_not_split(how):
  if 'embeddings_regularizer' in how:
    how = {'embeddings_regularizer': keras.regularizers.OrthogonalRegularizer()}
  with pytest.raises(errors.GdpError, match='may look at the whole'):
    _made(lambda: _embedding(**how), 2)


def test_what_sums_up_is_split():
  losses = [
      sum(
          _made(
              lambda: _embedding(embeddings_regularizer='l2',
                                 embeddings_constraint='non_neg'),
              count).losses) for count in (0, 2)
  ]
  np.testing.assert_allclose(*losses, rtol=1e-6)


def test_a_layer_with_a_call_of_its_own_is_not_split():

  class Own(keras.layers.Embedding):

    def call(self, inputs):
      return keras.ops.take(self.embeddings, inputs, axis=0) + 1.

  with gdp_grappler.split_tables({'words': 2}):
    with pytest.raises(errors.GdpError, match='call` of its own'):
      Own(_ROWS, _WIDTH, name='words').build()


def test_mixed_precision_is_as_of_the_whole():
  found = [
      _made(lambda: _embedding(dtype='mixed_float16'), count)(_IDS)
      for count in (0, 3)
  ]
  np.testing.assert_array_equal(*found)
