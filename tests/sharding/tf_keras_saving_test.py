"""What tf_keras saves of tables in parts is whole, and loaded either way."""

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from helpers import word_tables

# tf_keras says that these formats are old.
pytestmark = pytest.mark.filterwarnings('ignore:You are saving:UserWarning')

_ROWS = 23
_IDS = np.random.default_rng(0).integers(0, _ROWS, (8, 5))
_TARGETS = np.arange(8)
_DIRECTIONS = [(3, 0), (0, 3), (2, 4)]
_OPTIMIZERS = {
    'adam': tf_keras.optimizers.Adam,
    'legacy adam': tf_keras.optimizers.legacy.Adam
}


def _model(parts, optimizer='adam'):
  tf_keras.utils.set_random_seed(7)
  model = word_tables.model(tf_keras, parts, _ROWS, 6, 5, _ROWS)
  if isinstance(optimizer, str):
    optimizer = _OPTIMIZERS[optimizer]()
  model.compile(optimizer,
                tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  return model


def _train(model, eagerly=True):
  # Tracing a step costs more than the few steps of a test.
  model.run_eagerly = eagerly
  return model.train_on_batch(_IDS, _TARGETS)


# One format in all directions, the other in one or two.
@pytest.mark.parametrize('before, after, name, optimizer', [
    *((before, after, 'model.keras', 'adam') for before, after in _DIRECTIONS),
    (2, 4, 'model.h5', 'adam'), (3, 0, 'model.h5', 'legacy adam'),
    (0, 3, 'model.h5', 'legacy adam')
])
def test_a_model_goes_on_as_it_was_saved(before, after, name, optimizer,
                                         tmp_path):
  model = _model(before, optimizer)
  _train(model)
  model.save(tmp_path / name)
  with word_tables.scope(after):
    loaded = tf_keras.models.load_model(tmp_path / name)
  assert len(loaded.variables) == 3 + 2 * max(after - 1, 0)
  word_tables.assert_equal(model, loaded)
  # Moments of Adam come along: they show in the loss after the next step.
  losses = [(_train(model), _train(loaded)) for _ in range(2)]
  np.testing.assert_allclose(*zip(*losses), rtol=1e-6)


# Each optimizer in one direction, and one optimizer in all.
@pytest.mark.parametrize('has_slots', [False, True], ids=['new', 'trained'])
@pytest.mark.parametrize('before, after, optimizer', [
    *((3, 0, optimizer) for optimizer in _OPTIMIZERS), (0, 3, 'adam'),
    (2, 4, 'adam')
])
def test_a_checkpoint_has_the_whole(before, after, optimizer, has_slots,
                                    tmp_path):
  # A traced step creates slots, and restores them, inside a tf.function.
  eagerly = has_slots or (before, optimizer) == (2, 'adam')
  model, other = _model(before, optimizer), _model(after, optimizer)
  _train(model)
  if has_slots:
    _train(other)
    _train(other)
  path = tf.train.Checkpoint(model).save(str(tmp_path / 'checkpoint'))
  tf.train.Checkpoint(other).restore(path).expect_partial()
  word_tables.assert_equal(model, other)
  losses = [(_train(model), _train(other, eagerly)) for _ in range(2)]
  np.testing.assert_allclose(*zip(*losses), rtol=1e-6)
  shapes = {tuple(shape) for _, shape in tf.train.list_variables(path)}
  assert {(_ROWS, 6), (30, _ROWS), (_ROWS,)} <= shapes
  assert shapes <= {(_ROWS, 6), (30, _ROWS), (_ROWS,), ()}


@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_a_saved_model_has_the_whole(before, after, tmp_path):
  model = _model(before, tf_keras.optimizers.SGD(.1))
  _train(model)
  model.save(tmp_path / 'folder')
  with word_tables.scope(after):
    loaded = tf_keras.models.load_model(tmp_path / 'folder')
  assert len(loaded.variables) == 3 + 2 * max(after - 1, 0)
  word_tables.assert_equal(model, loaded)
  np.testing.assert_allclose(_train(loaded), _train(model), rtol=1e-6)


def test_an_exported_model_serves_without_us(tmp_path):
  model = _model(3)
  _train(model)
  model.export(tmp_path / 'exported')
  served = tf.saved_model.load(str(tmp_path / 'exported'))
  np.testing.assert_allclose(served.serve(tf.constant(_IDS, tf.int32)),
                             model(_IDS), rtol=1e-5)
  model.save(tmp_path / 'saved')
  plain = tf.saved_model.load(str(tmp_path / 'saved'))
  signature = plain.signatures['serving_default']
  found, = signature(tf.constant(_IDS, tf.int32)).values()
  np.testing.assert_allclose(found, model(_IDS), rtol=1e-5)


@pytest.mark.parametrize('name', ['w.weights.h5', 'w.h5', 'checkpoint'])
@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_weights_go_from_one_to_the_other(name, before, after, tmp_path):
  one, other = _model(before), _model(after)
  other.set_weights([0 * w for w in other.get_weights()])
  one.save_weights(tmp_path / name)
  other.load_weights(tmp_path / name)
  word_tables.assert_equal(one, other)


def test_weights_are_got_and_set_as_whole_ones():
  word_tables.assert_weights_are_whole(_model(3), _model(0),
                                       'words/embeddings:0')


def test_a_layer_gets_its_initial_weights_whole():
  word_tables.assert_initial_weights_are_whole(tf_keras, _IDS, _ROWS, 6)
