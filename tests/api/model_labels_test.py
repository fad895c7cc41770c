"""Labels of models whose loss does not tell them."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors


def _of_three(labels, outputs):
  """A loss whose labels are three numbers, whatever the outputs are."""
  labels.shape.assert_is_compatible_with((None, 3))
  return tf.reduce_sum(labels) - tf.reduce_sum(outputs)


def test_labels_that_nobody_can_guess_are_asked_for_or_taken_from_a_fit():
  """The advice was to make a program run that ran, even after a fit."""
  model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4)])
  model.compile('sgd', _of_three)
  with pytest.raises(errors.InvalidGraphError, match=r'Give data=\(x, y\)'):
    gdp_grappler.place(model, '2xP100', placer='random')
  model.fit(np.ones((8, 8)), np.ones((8, 3)), batch_size=4, verbose=0)
  graph = gdp_grappler.place(model, '2xP100', placer='random',
                             batch_size=16).graph
  assert 'IteratorGetNext' in graph.op_types
