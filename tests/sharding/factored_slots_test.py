"""Adafactor's means of rows and columns are loaded into the same parts only."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler import errors
from helpers import word_tables

_IDS = np.random.default_rng(0).integers(0, 13, (4, 3))
_OTHERS = [(0, 3), (3, 0), (3, 2)]
_NO_FIT = 'does not fit the optimizer.*means of rows and columns'

# Of variables of Keras itself, where a test compares them.
pytestmark = [
    pytest.mark.filterwarnings('ignore:__array__:DeprecationWarning'),
    pytest.mark.filterwarnings('ignore:The model has tables in parts')
]


@pytest.fixture(params=[keras, tf_keras], ids=['keras', 'tf_keras'], name='api')
def _api(request):
  return request.param


def _model(api, parts, optimizer='Adafactor', loss='mse'):
  model = word_tables.model(api, parts, 13, 4, 3, 5)
  if loss:
    model.compile(getattr(api.optimizers, optimizer)(), loss)
    # Tracing a step costs more than the few steps of a test.
    model.run_eagerly = True
  return model


def _train(model, steps=2):
  for _ in range(steps):
    model.train_on_batch(_IDS, np.ones((4, 5)))


def _saved(api, parts, folder, optimizer='Adafactor'):
  model = _model(api, parts, optimizer)
  _train(model)
  return model, tf.train.Checkpoint(model).save(str(folder / 'checkpoint'))


@pytest.mark.parametrize('before, after', _OTHERS)
def test_a_checkpoint_for_other_parts_is_refused_and_nothing_is_loaded(
    api, before, after, tmp_path):
  """It ended in an error of TensorFlow by the shape of a variable."""
  _, path = _saved(api, before, tmp_path)
  other = _model(api, after)
  _train(other, 1)
  weights = other.get_weights()
  with pytest.raises(errors.GdpError, match=_NO_FIT):
    tf.train.Checkpoint(other).restore(path)
  for a, b in zip(weights, other.get_weights(), strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('before, after', _OTHERS)
def test_so_is_one_that_waits_for_the_optimizer(api, before, after, tmp_path):
  """Some parts took values of others' shapes before the error."""
  _, path = _saved(api, before, tmp_path)
  other = _model(api, after)
  tf.train.Checkpoint(other).restore(path)
  with pytest.raises(errors.GdpError, match=_NO_FIT):
    other.optimizer.build(other.trainable_variables)


@pytest.mark.parametrize('parts', [0, 3])
@pytest.mark.parametrize('later', [False, True])
def test_the_same_parts_go_on_by_the_same_numbers(api, parts, later, tmp_path):
  model, path = _saved(api, parts, tmp_path)
  other = _model(api, parts)
  if not later:
    _train(other, 1)
  tf.train.Checkpoint(other).restore(path)
  _train(model)
  _train(other)
  word_tables.assert_equal(model, other)


@pytest.mark.parametrize('before, after', _OTHERS)
def test_what_the_error_advises_loads_the_weights(api, before, after, tmp_path):
  model, path = _saved(api, before, tmp_path)
  other = _model(api, after, loss=None)
  tf.train.Checkpoint(other).restore(path).expect_partial()
  word_tables.assert_equal(model, other)


def test_other_optimizers_are_loaded_into_other_parts(api, tmp_path):
  model, path = _saved(api, 3, tmp_path, 'Adam')
  other = _model(api, 2, 'Adam')
  _train(other, 1)
  tf.train.Checkpoint(other).restore(path)
  word_tables.assert_equal(model, other)


def test_of_two_optimizers_each_finds_its_own(api, tmp_path):
  """The checkpoint of one model in parts and of one that is whole."""
  models = [_model(api, parts) for parts in (3, 0)]
  for model in models:
    _train(model)
  path = tf.train.Checkpoint(a=models[0],
                             b=models[1]).save(str(tmp_path / 'checkpoint'))
  others = [_model(api, parts) for parts in (3, 0)]
  for other in others:
    _train(other, 1)
  tf.train.Checkpoint(a=others[0], b=others[1]).restore(path)
  for model, other in zip(models, others):
    word_tables.assert_equal(model, other)
