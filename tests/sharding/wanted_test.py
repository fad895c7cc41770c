import keras
import pytest
import tensorflow as tf

from gdp_grappler.sharding import deciding
from gdp_grappler.sharding import wanted


@pytest.fixture(name='heard')
def _heard(monkeypatch):
  heard = []

  def decide(layer, shape, itemsize, why):
    heard.append((layer, shape, itemsize, why))
    return 2

  monkeypatch.setattr(deciding, '_of_program', [decide])
  return heard


def _parts(knows_parts=True, **how):
  layer = keras.layers.Dense(4, name='head', dtype='float16')
  return wanted.parts(layer, {'shape': (3, 4), **how}, knows_parts)


def test_who_decides_hears_of_the_table(heard):
  assert _parts() == 2
  assert heard == [('head', (3, 4), 2, '')]
  assert _parts(dtype='float32') == 2
  assert heard[1][2] == 4


@pytest.mark.parametrize('why, how', [
    ('`call` of its own', {'knows_parts': False}),
    ('regularizer Orth',
     {'regularizer': keras.regularizers.OrthogonalRegularizer()}),
    ('constraint UnitNorm', {'constraint': keras.constraints.UnitNorm()}),
])
def test_what_looks_at_the_whole_table_has_it_whole(why, how, heard):
  assert _parts(**how) == 1
  assert why in heard[0][-1]


def test_variables_of_strategies_and_of_old_graphs_are_whole(heard):
  with tf.distribute.OneDeviceStrategy('CPU:0').scope():
    assert _parts() == 1
  with tf.Graph().as_default():
    assert _parts() == 1
  assert tf.function(_parts)() == 2  # Made eagerly all the same.
  assert 'strategy' in heard[0][-1] and 'TensorFlow 1' in heard[1][-1]
