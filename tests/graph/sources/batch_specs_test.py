"""Tests of `batch_specs`: what a batch looks like."""

import keras
import numpy as np
import pytest
import scipy.sparse
import tensorflow as tf
import tf_keras

from gdp_grappler import errors
from gdp_grappler.graph.sources import batch_specs
from gdp_grappler.graph.sources import training_step
from gdp_grappler.plugin.fitting import keras_function


def test_arrays_tensors_and_specs_are_alike():
  x = tf.TensorSpec((2, 3), tf.float32)
  y = tf.TensorSpec((2,), tf.int64)
  for data in ((np.zeros((2, 3)), np.zeros(2, np.int64)), (tf.zeros(
      (2, 3)), tf.zeros((2,), tf.int64)), (x, y)):
    assert batch_specs.of(data, 32) == (x, y)


def test_a_tuple_is_the_arguments_of_fit():
  """Once (x,) stayed a tuple, and None had no shape."""
  x = tf.TensorSpec((2, 3), tf.float32)
  for data in ((x,), (x, None), (x, None, None)):
    assert batch_specs.of(data, 32) == x
  assert batch_specs.of((x, x, None), 32) == (x, x)
  assert batch_specs.of(([x],), 32) == ((x,),)


@pytest.mark.parametrize('library', [keras, tf_keras])
@pytest.mark.parametrize('pack', [
    lambda x: x, lambda x: [x, x], lambda x: {'a': x},
    tf.data.Dataset.from_tensors, lambda x: tf.data.Dataset.from_tensors(
        (x,)), lambda x: tf.data.Dataset.from_tensors({'a': x})
])
def test_a_batch_is_packed_as_fit_packs_it(library, pack):
  """Once a `train_step` that takes x alone got (x,)."""
  got = []

  class _Model(library.Model):

    def train_step(self, data):
      got.append(tf.nest.map_structure(lambda t: None, data))
      return {'loss': tf.constant(0.)}

  model, data = _Model(), pack(np.zeros((4, 3), np.float32))
  model.compile('sgd')
  model.fit(data, shuffle=False, verbose=0)
  batch = batch_specs.of(data, 4)
  assert tf.nest.map_structure(lambda t: None, batch) == got[0]
  assert tf.nest.flatten(batch_specs.features(batch))[0].shape == (4, 3)


def test_structures_stay_and_lists_become_tuples():
  x = tf.TensorSpec((2,), tf.int32)
  assert batch_specs.of(([x, x], {'a': x}), 32) == ((x, x), {'a': x})


def test_a_dataset_is_its_batches():
  data = tf.data.Dataset.from_tensors((tf.zeros(3), 1)).repeat(8).batch(4)
  assert batch_specs.of(data, 16) == (tf.TensorSpec(
      (16, 3), tf.float32), tf.TensorSpec((16,), tf.int32))


@pytest.mark.parametrize('x, noted', [
    (tf.sparse.eye(4), True),
    (tf.ragged.constant([[1.], [2., 3.]]), True),
    (scipy.sparse.eye(4, format='csr'), True),
    (tf.data.Dataset.from_tensors(tf.sparse.eye(4)).batch(2), True),
    (tf.zeros((4, 4)), False),
    (np.zeros((4, 4)), False),
])
def test_a_line_says_that_sparse_data_is_taken_as_dense(x, noted):
  """They were taken as dense without a word."""
  said = []
  batch_specs.of(x, 32, said.append)
  assert said == [f'data: {training_step.AS_DENSE}'] * noted


@pytest.mark.parametrize('data, said', [
    (('a',), 'holds a str'),
    ((), 'a tuple of 0'),
    (tf.TensorSpec(None), 'known number of dimensions'),
])
def test_what_is_no_batch_is_refused(data, said):
  with pytest.raises(errors.InvalidGraphError, match=said):
    batch_specs.of(data, 32)


def _subclassed(library):

  class Net(library.Model):
    """Learns its inputs from the first batch."""

    def __init__(self):
      super().__init__()
      self.top = library.layers.Dense(2)

    def call(self, x):
      return self.top(x)

  model = Net()
  model.compile('sgd', 'mse')
  return model


@pytest.mark.parametrize('library', [keras, tf_keras])
def test_what_a_subclassed_model_was_trained_on(library):
  """Once: the model does not know its inputs."""
  model = _subclassed(library)
  assert batch_specs.of_fitted(model, 32) is None
  model.fit(np.zeros((8, 5), np.float32), np.zeros((8, 2), np.float32),
            batch_size=4, verbose=0)
  x, y = batch_specs.of_fitted(model, 32)
  assert (tuple(x.shape), tuple(y.shape)) == ((4, 5), (4, 2))


def test_what_a_model_was_trained_on_while_the_option_was_on():
  """Its function is one of the plugin, which hid what Keras had traced."""
  model = _subclassed(keras)
  model.fit(np.zeros((8, 5), np.float32), np.zeros((8, 2), np.float32),
            batch_size=4, verbose=0)
  made = model.train_function
  model.train_function = keras_function.KerasFunction(
      getattr(made, 'stock', made), 'fit', False)
  x, y = batch_specs.of_fitted(model, 32)
  assert (tuple(x.shape), tuple(y.shape)) == ((4, 5), (4, 2))


@pytest.mark.parametrize('library', [keras, tf_keras])
def test_labels_on_which_a_model_that_knows_its_inputs_was_trained(library):
  """They were guessed from the loss, even after a fit."""
  model = library.Sequential([library.Input((5,)), library.layers.Dense(2)])
  model.compile('sgd', 'mse')
  assert batch_specs.labels_of_fitted(model, 32) is None
  model.fit(np.zeros((8, 5), np.float32), np.zeros((8, 1), np.int32),
            batch_size=4, verbose=0)
  (y,) = batch_specs.labels_of_fitted(model, 32)
  assert tuple(y.shape) == (32, 1) and y.dtype == tf.int32
  own = _subclassed(library)
  own.fit(np.zeros((8, 5), np.float32), np.zeros((8, 2), np.float32), verbose=0)
  assert batch_specs.labels_of_fitted(own, 32) is None


def _trained_on(labels, outputs=None):
  """Returns a model, as after a fit on labels of a spec."""
  inputs = keras.Input((5,))
  outputs = keras.layers.Dense(2) if outputs is None else outputs
  model = keras.Model(inputs, outputs(inputs))
  model.train_function = tf.function(lambda iterator: None)
  model.train_function.get_concrete_function(
      tf.data.IteratorSpec((tf.TensorSpec((None, 5)), labels)))
  return model


@pytest.mark.parametrize('labels', [
    tf.TensorSpec((None, None), tf.int64),
    tf.TensorSpec(None, tf.int64),
    tf.RaggedTensorSpec((None, None), tf.int64),
    tf.SparseTensorSpec((None, 2), tf.int64),
])
def test_labels_whose_shape_a_fit_left_open_are_guessed(labels):
  """Unknown dimensions became 64, and labels of unknown rank an error."""
  assert batch_specs.labels_of_fitted(_trained_on(labels), 32) is None


def test_labels_have_the_batch_of_the_inputs():
  """The labels of a model with a scalar output had no batch."""
  model = _trained_on(
      tf.TensorSpec((None, 1)),
      keras.layers.Lambda(keras.ops.mean, output_shape=lambda _: ()))
  assert model.outputs[0].shape == ()
  (y,) = batch_specs.labels_of_fitted(model, 32)
  assert tuple(y.shape) == (32, 1)
