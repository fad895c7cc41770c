"""Labels of models whose loss does not determine the labels' shape."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler.graph.sources import gpu_rewrites


def _of_three(labels, outputs):
  """A loss whose labels are three numbers, whatever the outputs are."""
  labels.shape.assert_is_compatible_with((None, 3))
  return tf.reduce_sum(labels) - tf.reduce_sum(outputs)


def test_labels_that_nobody_can_guess_are_asked_for_or_taken_from_a_fit():
  """Once the error said to make the program run first, which ran."""
  model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
  model.compile('sgd', _of_three)
  with pytest.raises(errors.InvalidGraphError, match=r'Give data=\(x, y\)'):
    gdp_grappler.place(model, '2xP100', placer='random')
  model.fit(np.ones((8, 8)), np.ones((8, 3)), batch_size=4, verbose=0)
  graph = gdp_grappler.place(model, '2xP100', placer='random',
                             batch_size=16).graph
  assert 'IteratorGetNext' in graph.op_types


def test_a_model_is_placed_after_a_fit_that_left_the_shape_of_labels_open():
  """Once unknown dimensions of labels became 64, unlike the outputs."""
  model = keras.Sequential([keras.Input((10, 3)), keras.layers.Dense(4)])
  model.compile('sgd', keras.losses.SparseCategoricalCrossentropy())
  specs = tf.TensorSpec((None, 10, 3)), tf.TensorSpec((None, None), tf.int64)
  batches = [(np.ones((2, 10, 3), np.float32), np.ones((2, 10), np.int64))]
  model.fit(
      tf.data.Dataset.from_generator(lambda: batches, output_signature=specs),
      steps_per_epoch=1, shuffle=False, verbose=0)
  graph = gdp_grappler.place(model, '2xP100', placer='random').graph
  assert 'IteratorGetNext' in graph.op_types


def test_data_is_not_the_advice_where_the_trace_succeeds(monkeypatch):
  """Once each error about a model ended with the advice to give data."""

  def fails(*_):
    raise errors.InvalidGraphError('It cannot be rewritten.')

  monkeypatch.setattr(gpu_rewrites, 'rewritten', fails)
  model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
  model.compile('sgd', 'mse')
  with pytest.raises(errors.InvalidGraphError, match='be rewritten.$'):
    gdp_grappler.place(model, '2xP100', placer='random')
