"""A `tf.train.Checkpoint` of Keras 3 is loaded in parts or whole."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler.sharding import table

_IDS = np.random.default_rng(0).integers(0, 13, (4, 3))
_DIRECTIONS = [(3, 0), (0, 3), (3, 2)]

# Of variables of Keras itself, where a test compares them.
pytestmark = pytest.mark.filterwarnings('ignore:__array__:DeprecationWarning')


def _model(parts, optimizer='adam'):
  with (gdp_grappler.split_tables({'words': parts, 'head': parts})
        if parts else contextlib.nullcontext()):
    model = keras.Sequential([
        keras.Input((3,), dtype='int32'),
        keras.layers.Embedding(13, 4, name='words'),
        keras.layers.Flatten(),
        keras.layers.Dense(5, name='head')
    ])
  model.compile(optimizer, 'mse')
  return model


def _train(model, steps=2):
  for _ in range(steps):
    model.train_on_batch(_IDS, np.ones((4, 5)))


def _values(model):
  return [
      *model.get_weights(),
      *(v.numpy() for v in table.joined(model.optimizer.variables))
  ]


def _equal(one, other):
  for a, b in zip(_values(one), _values(other), strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_a_trained_model_takes_it(before, after, tmp_path):
  """Parts took the value of the whole table, and failed by its shape."""
  model, other = _model(before), _model(after)
  _train(model)
  _train(other, 1)
  path = tf.train.Checkpoint(model).save(str(tmp_path / 'checkpoint'))
  tf.train.Checkpoint(other).restore(path).assert_consumed()
  _equal(model, other)


@pytest.mark.parametrize('optimizer', ['adam', 'nadam'])
@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_slots_that_are_made_later_take_it(before, after, optimizer, tmp_path):
  model, other = _model(before, optimizer), _model(after, optimizer)
  _train(model)
  path = tf.train.Checkpoint(model).save(str(tmp_path / 'checkpoint'))
  status = tf.train.Checkpoint(other).restore(path)
  other.optimizer.build(other.trainable_variables)
  status.assert_existing_objects_matched()
  _equal(model, other)


def test_names_and_shapes_are_those_of_the_whole(tmp_path):
  listed = []
  for parts in (0, 3):
    model = _model(parts)
    _train(model)
    listed.append(
        tf.train.list_variables(
            tf.train.Checkpoint(model).save(str(tmp_path / str(parts)))))
  assert listed[0] == listed[1]


def test_a_layer_alone_has_its_table(tmp_path):
  """Without an optimizer no part was in the checkpoint, without a word."""
  one, other = (_model(parts).layers[0] for parts in (3, 2))
  path = tf.train.Checkpoint(one).save(str(tmp_path / 'checkpoint'))
  tf.train.Checkpoint(other).restore(path).assert_consumed()
  np.testing.assert_array_equal(one.get_weights()[0], other.get_weights()[0])
