import types

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.plugin.fitting import batch_sizes


@pytest.fixture
def keras():
  """A module such as those in which Keras takes its data."""

  class EpochIterator:

    def __init__(self, data_adapter):
      self.data_adapter = data_adapter

  module = types.SimpleNamespace(EpochIterator=EpochIterator)
  batch_sizes._wrap('EpochIterator', 'data_adapter', module)
  yield module
  batch_sizes._local.size = None


def _open_iterator():
  data = tf.data.Dataset.from_generator(
      lambda: iter([np.ones((3, 2))]), output_signature=tf.TensorSpec(
          (None, 2), tf.float64))
  return iter(data)


@pytest.mark.parametrize('fields',
                         [{'_batch_size': 12}, {'_first_batch_size': 12},
                          {'_batch_size': None, '_dataset': tf.zeros((12, 3))}])
def test_an_open_iterator_has_the_size_of_its_adapter(keras, fields):
  keras.EpochIterator(types.SimpleNamespace(**fields))
  assert batch_sizes.size_of(_open_iterator()) == 12


def test_what_tells_its_size_is_believed(keras):
  keras.EpochIterator(types.SimpleNamespace(_batch_size=12))
  assert batch_sizes.size_of([(np.ones((5, 2)),)]) == 5


def test_other_data_is_not_that_of_keras(keras):
  keras.EpochIterator(types.SimpleNamespace(_batch_size=12))
  assert batch_sizes.size_of(iter([(np.ones((5, 2)),)])) is None


def test_nobody_knows(keras):
  keras.EpochIterator(types.SimpleNamespace())
  assert batch_sizes.size_of(_open_iterator()) is None


def test_wraps_once(keras):
  wrapped = keras.EpochIterator.__init__
  batch_sizes._wrap('EpochIterator', 'data_adapter', keras)
  assert keras.EpochIterator.__init__ is wrapped
