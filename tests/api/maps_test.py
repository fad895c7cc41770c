"""Maps of layers on Keras models; `placers/plans` has maps on small graphs."""

import keras
import numpy as np
import pytest
import tf_keras

import gdp_grappler


def _words():
  model = keras.Sequential([
      keras.Input((4,), dtype='int32', batch_size=2),
      keras.layers.Embedding(100_000, 8),
      keras.layers.Flatten(),
      keras.layers.Dense(2)
  ])
  model.compile('adam', 'mse')
  return model


def test_a_table_that_a_map_puts_on_a_device_stays_whole(tmp_path):
  """Once the layer had four parts, all on the device of the map."""
  told = []
  placed = gdp_grappler.place(_words, '2xP100', plan={'embedding*': 'CPU:0'},
                              max_memory={'GPU': '12MB'}, tell=told.append)
  assert not any('part_' in v for v in placed.graph.variables)
  assert len([line for line in told if 'stays whole' in line]) == 1
  placed.save(tmp_path / 'plan.json')
  again = gdp_grappler.load_plan(tmp_path / 'plan.json', _words)
  np.testing.assert_array_equal(again.placement.devices,
                                placed.placement.devices)


@pytest.mark.parametrize('package', [keras, tf_keras],
                         ids=['keras', 'tf_keras'])
@pytest.mark.parametrize('optimizer', ['sgd', 'adam', 'adagrad'])
def test_the_gradient_of_the_first_layer_is_with_its_variable(
    package, optimizer):
  """Once the gradient followed the batch to the CPU, with the update."""
  x = inputs = package.Input((64,))
  for name in 'abc':
    x = package.layers.Dense(8, name=name)(x)
  model = package.Model(inputs, x)
  model.compile(optimizer, 'mse')
  placed = gdp_grappler.place(model, '2xP100', plan={'b': 'GPU:1'})
  on_host = {
      kind
      for kind, device in zip(placed.graph.op_types, placed.placement.devices)
      if not device
  }
  assert on_host == {'_Arg', 'IteratorGetNext'}


def test_the_encoder_does_not_follow_the_decoder():
  """An op in the gradient of the encoder's loop has the decoder's name."""
  words = keras.Input((5,), dtype='int32'), keras.Input((5,), dtype='int32')
  source, target = map(keras.layers.Embedding(9, 4, name='words'), words)
  cell = {'units': 4, 'use_cudnn': False}
  _, state = keras.layers.GRU(**cell, return_state=True, name='encoder')(source)
  decoded = keras.layers.GRU(**cell, name='decoder')(target,
                                                     initial_state=state)
  model = keras.Model(words, keras.layers.Dense(9)(decoded))
  model.compile('sgd', 'mse')
  placed = gdp_grappler.place(model, '2xP100', plan={'decoder': 'GPU:1'})
  cluster = placed.step.cluster
  devices = {
      layer: {
          cluster.device_labels[device] for name, device in zip(
              placed.graph.variables, placed.placement.devices)
          if name.startswith(f'{layer}/gru_cell')
      } for layer in ('encoder', 'decoder')
  }
  assert devices == {'encoder': {'GPU:0'}, 'decoder': {'GPU:1'}}
