"""Maps of layers on Keras models; `placers/plans` has maps on small graphs."""

import keras
import numpy as np
import pytest
import tensorflow as tf
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


def _inner(package, *units):
  """A model whose variables have the name of the model in Keras 3."""
  return package.Sequential(
      [package.Input((8,)), *map(package.layers.Dense, units)])


def _inner_of_functions(package, *units):
  """A model whose variables do not have the name of the model."""
  x = inputs = package.Input((8,))
  for size in units:
    x = package.layers.Dense(size)(x)
  return package.Model(inputs, x)


def _inner_of_a_class(package, *units):

  class Inner(package.Model):

    def __init__(self):
      super().__init__()
      self.inside = [package.layers.Dense(size) for size in units]

    def call(self, x):
      for layer in self.inside:
        x = layer(x)
      return x

  return Inner()


def _shared_layer(package, *units):
  return package.layers.Dense(units[-1])


@pytest.mark.parametrize('package', [keras, tf_keras],
                         ids=['keras', 'tf_keras'])
@pytest.mark.parametrize('order', ['ab', 'abab', 'babab'])
@pytest.mark.parametrize(
    'make', [_inner, _inner_of_functions, _inner_of_a_class, _shared_layer])
def test_a_map_of_models_called_several_times_gives_their_plan(
    package, order, make):
  """Rows had numbers of calls, and a map lost a call or named another model."""
  inside = {'a': make(package, 16, 8), 'b': make(package, 8)}
  x = inputs = package.Input((8,))
  for name in order:
    x = inside[name](x)
  model = package.Model(inputs, x)
  model.compile('adam', 'mse')
  layers = {inside['a'].name: 'GPU:1', inside['b'].name: 'GPU:2', '*': 'GPU:0'}
  placed = gdp_grappler.place(model, '3xP100', plan=layers, verbose=False)
  found = placed.layer_map()
  sizes = {layer.name: 4 * layer.count_params() for layer in inside.values()}
  rows = {row.name: row.parameter_bytes for row in placed.layers}
  assert {name: rows[name] for name in sizes} == sizes
  assert not any(
      size for name, size in rows.items() if name not in (*sizes, '*'))
  assert {name: found[name] for name in layers} == layers
  again = gdp_grappler.place(model, '3xP100', plan=found, verbose=False)
  np.testing.assert_array_equal(again.placement.devices,
                                placed.placement.devices)
  assert again.layer_map() == found


@pytest.mark.parametrize('package', [keras, tf_keras],
                         ids=['keras', 'tf_keras'])
def test_models_that_a_step_calls_in_turn_are_told_apart(package):
  """The row 'sequential_1' was the first model, which has the larger kernel."""
  first, second = _inner(package, 16, 8), _inner(package, 8)

  @tf.function
  def step(x):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(second(first(x)) * second(x) + first(x)**2)
    weights = first.trainable_variables + second.trainable_variables
    for weight, gradient in zip(weights, tape.gradient(loss, weights)):
      weight.assign_sub(gradient)

  layers = {first.name: 'GPU:1', second.name: 'GPU:2'}
  placed = gdp_grappler.place(step, '3xP100', signature=(tf.zeros((4, 8)),),
                              plan=layers, verbose=False)
  assert {
      row.name: (row.device, row.parameter_bytes) for row in placed.layers
      if row.parameter_bytes
  } == {
      first.name: ('GPU:1', 4 * first.count_params()),
      second.name: ('GPU:2', 4 * second.count_params())
  }
  found = placed.layer_map()
  assert {name: found[name] for name in layers} == layers
