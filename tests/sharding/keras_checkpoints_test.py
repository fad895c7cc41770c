"""A `tf.train.Checkpoint` of Keras 3 is loaded in parts or whole."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.sharding import table
from helpers import word_tables

_IDS = np.random.default_rng(0).integers(0, 13, (4, 3))
_DIRECTIONS = [(3, 0), (0, 3), (3, 2)]

# Of variables of Keras itself, where a test compares them.
pytestmark = pytest.mark.filterwarnings('ignore:__array__:DeprecationWarning')


def _model(parts, optimizer='adam'):
  model = word_tables.model(keras, parts, 13, 4, 3, 5)
  # Tracing a step costs more than the few steps of a test.
  model.compile(optimizer, 'mse', run_eagerly=True)
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


def _restore_and_build(model, other, folder):
  """Makes the optimizer's variables only when the checkpoint waits for them."""
  path = tf.train.Checkpoint(model).save(str(folder / 'checkpoint'))
  status = tf.train.Checkpoint(other).restore(path)
  other.optimizer.build(other.trainable_variables)
  status.assert_existing_objects_matched()


@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_a_trained_model_takes_it(before, after, tmp_path):
  """Parts took the value of the whole table, and failed by its shape."""
  model, other = _model(before), _model(after)
  # In one case a traced step makes the slots, as in most programs.
  model.run_eagerly = other.run_eagerly = before == 3
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
  _restore_and_build(model, other, tmp_path)
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


@pytest.mark.parametrize('make', [
    lambda: keras.layers.Embedding(13, 4, name='words'),
    lambda: keras.layers.Dense(5, name='head')
], ids=['embedding', 'dense'])
@pytest.mark.parametrize('before, after', _DIRECTIONS)
def test_a_layer_that_is_built_later_takes_it(make, before, after, tmp_path):
  """The parts of such a layer kept their random values."""
  one, other = make(), make()
  with word_tables.scope(before):
    one(_IDS)
  path = tf.train.Checkpoint(layer=one).save(str(tmp_path / 'checkpoint'))
  status = tf.train.Checkpoint(layer=other).restore(path)
  with word_tables.scope(after):
    other(_IDS)
  status.assert_consumed()
  for a, b in zip(one.get_weights(), other.get_weights(), strict=True):
    np.testing.assert_array_equal(a, b)


class _WithModule(keras.optimizers.SGD):
  """Has a variable that is in none of the optimizer's lists."""

  def build(self, variables):
    super().build(variables)
    self.extra = tf.Module()
    self.extra.count = tf.Variable(0.)


@pytest.mark.parametrize('before, after', [(3, 3), (0, 3)])
def test_what_an_optimizer_makes_last_takes_it(before, after, tmp_path):
  """Its position in the checkpoint was dropped, as those of lists are."""
  model, other = (_model(parts, _WithModule(momentum=.9, name='sgd'))
                  for parts in (before, after))
  _train(model)
  model.optimizer.extra.count.assign(7.)
  _restore_and_build(model, other, tmp_path)
  assert float(other.optimizer.extra.count) == 7
  _equal(model, other)


class _WithList(keras.optimizers.SGD):
  """Has variables of its own in its list of all, behind those of slots."""

  def build(self, variables):
    super().build(variables)
    self.counts = [self.add_variable((2,), name=f'count{i}') for i in range(2)]


@pytest.mark.parametrize('before, after', [(3, 3), *_DIRECTIONS])
def test_variables_behind_the_last_slot_are_restored(before, after, tmp_path):
  """They kept their initial values if the checkpoint had waited for them."""
  model, other = (_model(parts, _WithList(momentum=.9, name='sgd'))
                  for parts in (before, after))
  _train(model)
  for i, variable in enumerate(model.optimizer.counts):
    variable.assign([7. + i, 9. + i])
  _restore_and_build(model, other, tmp_path)
  _equal(model, other)
