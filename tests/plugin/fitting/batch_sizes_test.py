import types

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.plugin.fitting import batch_sizes


@pytest.fixture
def keras():
  """A module such as those in which Keras takes its data."""

  class EpochIterator:

    def __init__(self, data_adapter, dataset=None):
      self.data_adapter = data_adapter
      self.dataset = dataset or _open_dataset()

  module = types.SimpleNamespace(EpochIterator=EpochIterator)
  batch_sizes._wrap('EpochIterator', 'data_adapter', 'dataset', module)
  return module


def _open_dataset():
  return tf.data.Dataset.from_generator(
      lambda: iter([np.ones((3, 2))]), output_signature=tf.TensorSpec(
          (None, 2), tf.float64))


def _feed(keras, dataset=None, **fields):
  return keras.EpochIterator(types.SimpleNamespace(**fields), dataset).dataset


@pytest.mark.parametrize('fields',
                         [{'_batch_size': 12}, {'_first_batch_size': 12},
                          {'_batch_size': None, '_dataset': tf.zeros((12, 3))}])
def test_an_open_iterator_has_the_size_of_its_adapter(keras, fields):
  assert batch_sizes.size_of(iter(_feed(keras, **fields))) == 12


def test_other_data_does_not_change_the_size(keras):
  """Once training got the batch size of `evaluate` after each epoch."""
  trained = _feed(keras, _batch_size=12)
  _feed(keras, _batch_size=30)
  assert batch_sizes.size_of(iter(trained)) == 12


def test_what_tells_its_size_is_believed(keras):
  dataset = tf.data.Dataset.from_tensors(np.ones((5, 2)))
  assert batch_sizes.size_of(iter(_feed(keras, dataset, _batch_size=12))) == 5


def test_other_data_is_not_that_of_keras(keras):
  _feed(keras, _batch_size=12)
  assert batch_sizes.size_of(iter(_open_dataset())) is None
  assert batch_sizes.size_of(iter([(np.ones((5, 2)),)])) is None


def test_nobody_knows(keras):
  assert batch_sizes.size_of(iter(_feed(keras))) is None


def test_wraps_once(keras):
  wrapped = keras.EpochIterator.__init__
  batch_sizes._wrap('EpochIterator', 'data_adapter', 'dataset', keras)
  assert keras.EpochIterator.__init__ is wrapped


@pytest.mark.parametrize('name', ['keras', 'tf_keras'])
def test_keras_itself_tells_the_size_of_each_epoch(name):
  """Once the second epoch had the batch size of `evaluate`."""
  package = pytest.importorskip(name)
  batch_sizes.watch()
  seen = []

  class Model(package.Sequential):

    def make_train_function(self, force=False):
      super().make_train_function(force)
      stock = self.train_function

      def train(data):
        seen.append(batch_sizes.size_of(data))
        return stock(data)

      self.train_function = train
      return train

  model = Model([package.layers.Dense(1)])
  model.compile('sgd', 'mse')
  x, y = np.ones((20, 2)), np.ones((20, 1))
  model.fit(x, y, batch_size=8, epochs=2, verbose=0, validation_data=(x, y),
            validation_batch_size=5)
  assert seen == [8] * 6
