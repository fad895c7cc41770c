import types

import keras
import pytest
import tensorflow as tf
import tf_keras

from gdp_grappler.sharding import choice
from gdp_grappler.sharding import deciding
from gdp_grappler.sharding import keras_layers
from gdp_grappler.sharding import tf_keras_layers
from gdp_grappler.sharding import wanted
from helpers import strategies


@pytest.fixture(name='heard')
def _heard(monkeypatch):
  keras_layers.install()
  tf_keras_layers.install()
  heard = []

  def decide(*table):
    heard.append(table)
    return 2

  monkeypatch.setattr(deciding, '_of_program', [decide])
  return heard


def _parts(known=(True, True), **how):
  layer = keras.layers.Dense(4, name='head', dtype='float16')
  return wanted.parts(layer, {'shape': (3, 4), 'name': 'kernel', **how},
                      dict(zip(('call', 'add_weight'), known)), _sizes)


def _sizes(shape, count):
  return choice.sizes(shape[0], count)


def test_who_decides_hears_of_the_table(heard):
  assert _parts() == 2
  assert heard[0][:5] == ('head', (3, 4), 2, '', 'head/kernel')
  assert _parts(dtype='float32') == 2
  assert heard[1][2] == 4


@pytest.mark.parametrize('why, how', [
    ('its own `call`', {'known': (False, True)}),
    ('its own `add_weight`', {'known': (True, False)}),
    ('regularizer Orth',
     {'regularizer': keras.regularizers.OrthogonalRegularizer()}),
    ('constraint UnitNorm', {'constraint': keras.constraints.UnitNorm()}),
])
def test_what_looks_at_the_whole_table_has_it_whole(why, how, heard):
  assert _parts(**how) == 1
  assert why in heard[0][3]


def test_variables_of_strategies_and_of_old_graphs_are_whole(heard):
  with strategies.one_device('CPU:0') as strategy, strategy.scope():
    assert _parts() == 1
  with tf.Graph().as_default():
    assert _parts() == 1
  assert tf.function(_parts)() == 2  # Made eagerly all the same.
  assert 'strategy' in heard[0][3] and 'TensorFlow 1' in heard[1][3]


@pytest.mark.parametrize('package', [keras, tf_keras],
                         ids=['keras', 'tf_keras'])
def test_who_decides_hears_of_the_scopes_that_a_layer_knows(package, heard):

  class Net(package.Model):

    def __init__(self):
      super().__init__(name='net')
      self.words = package.layers.Embedding(8, 2, name='words')

    def call(self, inputs):
      return self.words(inputs)

  Net()(tf.zeros((1, 3), 'int32'))
  path = 'net/words' if package is keras else 'words'
  assert heard[0][4] == f'{path}/embeddings'


@pytest.mark.parametrize('package', [keras, tf_keras],
                         ids=['keras', 'tf_keras'])
@pytest.mark.parametrize('kind, arguments', [('Embedding', (101, 3)),
                                             ('Dense', (101,))])
def test_who_decides_hears_how_many_parts_there_will_be(package, kind,
                                                        arguments, heard):
  """A line announced 500 parts of a table with 101 rows."""
  layer = getattr(package.layers, kind)(*arguments)
  layer.build((None, 3))
  assert [heard[0][5](count) for count in (2, 500)] == [2, 101]


def test_a_layer_without_a_type_is_made(heard):
  """`tf.layers.Dense(4).build(...)` failed, as its type was not known yet."""
  layer = types.SimpleNamespace(name='head', variable_dtype=None)
  how = {'shape': (3, 4), 'name': 'kernel'}
  assert wanted.parts(layer, how, {}, _sizes) == 2
  assert heard[0][2] == 4


def test_a_failure_leaves_a_table_whole(heard):
  """A failed choice of parts ended the user's program."""
  with pytest.warns(UserWarning, match='Dense is made whole: .*KeyError'):
    assert wanted.parts(keras.layers.Dense(4), {'name': 'kernel'}, {},
                        _sizes) == 1
  assert not heard
