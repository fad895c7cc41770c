"""What is saved of tables in parts is whole, and loaded in parts or whole."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from helpers import word_tables

# Of variables of Keras itself, when it saves them.
pytestmark = pytest.mark.filterwarnings('ignore:__array__:DeprecationWarning')

_ROWS = 23
_IDS = np.random.default_rng(0).integers(0, _ROWS, (8, 5))
_TARGETS = np.arange(8)


def _model(parts, optimizer='adam'):
  keras.utils.set_random_seed(7)
  model = word_tables.model(keras, parts, _ROWS, 6, 5, _ROWS)
  model.compile(optimizer,
                keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def _train(model):
  # Tracing a step costs more than the few steps of a test.
  model.run_eagerly = True
  return model.fit(_IDS, _TARGETS, batch_size=4, verbose=0,
                   shuffle=False).history['loss']


@pytest.mark.parametrize('before, after', [(3, 3), (3, 0), (0, 3)])
def test_a_model_goes_on_as_it_was_saved(before, after, tmp_path):
  model = _model(before)
  _train(model)
  model.save(tmp_path / 'model.keras')
  with word_tables.scope(after), warnings.catch_warnings():
    warnings.filterwarnings('error', message='Skipping')
    loaded = keras.models.load_model(tmp_path / 'model.keras')
  assert len(loaded.variables) == 3 + 2 * max(after - 1, 0)
  word_tables.assert_equal(model, loaded)
  # The file has the moments of Adam, too. They change the loss of the second
  # step.
  np.testing.assert_allclose(_train(loaded), _train(model), rtol=1e-6)


@pytest.mark.parametrize('name', ['w.weights.h5', 'old.h5'])
@pytest.mark.parametrize('before, after', [(3, 0), (0, 3), (2, 4)])
def test_weights_go_from_one_to_the_other(name, before, after, tmp_path):
  one, other = _model(before), _model(after)
  other.set_weights([0 * w for w in other.get_weights()])
  if name == 'old.h5':
    one.save(tmp_path / name)
  else:
    one.save_weights(tmp_path / name)
  other.load_weights(tmp_path / name)
  word_tables.assert_equal(one, other)


def test_weights_are_got_and_set_as_whole_ones():
  word_tables.assert_weights_are_whole(_model(3), _model(0), 'embeddings')


def test_a_layer_gets_its_initial_weights_whole():
  word_tables.assert_initial_weights_are_whole(keras, _IDS, _ROWS, 6)


def test_exports_have_the_parts(tmp_path):
  model = _model(3)
  _train(model)
  model.export(tmp_path / 'exported', verbose=False)
  loaded = tf.saved_model.load(tmp_path / 'exported')
  np.testing.assert_allclose(loaded.serve(tf.constant(_IDS, tf.int32)),
                             model(_IDS), rtol=1e-6)
  assert [tuple(v.shape) for v in loaded.variables] == [
      *((rows, 6) for rows in (8, 8, 7)), *((30, units) for units in (8, 8, 7)),
      (_ROWS,)
  ]


@pytest.mark.parametrize('optimizer', [
    lambda: keras.optimizers.Lamb(), lambda: keras.optimizers.SGD(clipnorm=1.)
], ids=['lamb', 'clipnorm'])
def test_optimizers_that_look_at_whole_variables_are_warned_of(optimizer):
  model = _model(2, optimizer())
  with pytest.warns(UserWarning, match='tables in parts'):
    _train(model)
  with warnings.catch_warnings():
    warnings.filterwarnings('error', message='The model has tables')
    _train(_model(0, optimizer()))
