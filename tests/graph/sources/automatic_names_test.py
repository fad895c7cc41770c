"""Tests of the names that Keras gives to layers."""

import keras
import pytest
import tf_keras

from gdp_grappler.graph.sources import automatic_names


@pytest.mark.parametrize('module', [keras, tf_keras])
def test_layers_made_to_be_looked_at_are_not_counted(module):
  before = module.layers.Dense(1).name
  with automatic_names.kept():
    inside = module.layers.Dense(1).name
    module.layers.Flatten(name='own')
  after = module.layers.Dense(1).name
  assert inside == after != before


def test_what_was_not_counted_before_begins_anew():
  keras.backend.clear_session()
  with automatic_names.kept():
    assert keras.layers.Dense(1).name == 'dense'
  assert keras.layers.Dense(1).name == 'dense'
  assert keras.layers.Dense(1).name == 'dense_1'
