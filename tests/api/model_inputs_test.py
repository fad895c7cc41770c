"""Tests of `place` on models and functions that say what their inputs are."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import gdp_grappler
from gdp_grappler import errors


def _placed(graph, **arguments):
  return gdp_grappler.place(graph, '2xP100', placer='random', **arguments)


class _Subclassed(keras.Model):
  """A model that does not know its inputs."""

  def __init__(self):
    super().__init__(name='own')
    self.hidden = keras.layers.Dense(8, name='hidden')
    self.top = keras.layers.Dense(2, name='top')

  def call(self, inputs):
    return self.top(self.hidden(inputs['x']))


def _compiled(model):
  model.compile('adam', 'mse')
  return model


@pytest.mark.parametrize('how', ['data', 'specs', 'signature', 'dataset'])
def test_a_model_that_does_not_know_its_inputs_takes_a_batch(how):
  x, y = {'x': np.zeros((4, 3), np.float32)}, np.zeros((4, 2), np.float32)
  specs = {'x': tf.TensorSpec((4, 3))}, tf.TensorSpec((4, 2))
  given = {
      'data': {'data': (x, y)}, 'specs': {'data': specs},
      'signature': {'signature': specs},
      'dataset': {'data': tf.data.Dataset.from_tensors((x, y))}
  }[how]
  graph = _placed(_compiled(_Subclassed()), **given).graph
  assert 'IteratorGetNext' in graph.op_types
  # Weights, biases, and two slots of each.
  assert graph.param_bytes.sum() >= 3 * 4 * (3 * 8 + 8 + 8 * 2 + 2)


def _made_of_own_class():
  return _compiled(_Subclassed())


# Keras warns that it could not build the model.
@pytest.mark.filterwarnings('ignore::UserWarning')
@pytest.mark.parametrize('graph', [
    _made_of_own_class,
    pytest.param(None, id='compiled'),
    pytest.param(_Subclassed, id='not compiled'),
])
def test_a_batch_that_the_model_does_not_take_is_an_error_of_ours(graph):
  """A function that makes the model let Keras' KeyError through."""
  if graph is None:
    graph = _made_of_own_class()
  elif graph is _Subclassed:
    graph = graph()
  data = {'z': np.zeros((4, 3), np.float32)}, np.zeros((4, 2), np.float32)
  with pytest.raises(errors.InvalidGraphError) as caught:
    _placed(graph, data=data)
  said = str(caught.value)
  assert said.startswith('own cannot be ') and 'Give data=(x, y)' in said
  assert 'Exception encountered when calling' in said
  assert '\x1b' not in said


def test_a_batch_of_a_model_that_is_not_compiled_is_its_input():
  graph = _placed(_Subclassed(), data={'x': tf.TensorSpec((4, 3))}).graph
  assert 'MatMul' in graph.op_types and 'AssignVariableOp' not in graph.op_types


def test_a_function_makes_a_model_without_weights():
  made = []

  def make():
    made.append(_compiled(_Subclassed()))
    return made[-1]

  specs = {'x': tf.TensorSpec((4, 3))}, tf.TensorSpec((4, 2))
  placed = _placed(make, data=specs)
  assert placed.graph.name == 'own'
  assert placed.graph.param_bytes.sum() >= 3 * 4 * (3 * 8 + 8 + 8 * 2 + 2)
  assert not made[0].hidden.kernel.numpy().size


def _words():
  return _compiled(
      keras.Sequential([
          keras.Input((4,), dtype='int32', batch_size=2),
          keras.layers.Embedding(100_000, 8),
          keras.layers.Flatten(),
          keras.layers.Dense(2)
      ]))


@pytest.mark.parametrize('split_tables', ['auto', {'embedding*': 4}])
def test_a_function_that_makes_a_model_makes_its_table_in_parts(split_tables):
  """Its table was too large for both devices, and nobody split it."""
  told = []
  placed = gdp_grappler.place(_words, '2xP100', placer='m_etf',
                              split_tables=split_tables,
                              max_memory={'GPU': '12MB'}, tell=told.append)
  assert len([line for line in told if 'parts' in line]) == 1
  parts = {v for v in placed.graph.variables if 'part_3' in v}
  assert len(parts) == 3  # With Adam's slots.


def test_a_function_is_looked_at_without_counting_its_layers():
  names = [layer.name for layer in _words().layers]
  placed = _placed(_words)
  again = [layer.name for layer in _words().layers]
  assert names != again
  assert all(
      any(name in op for op in placed.graph.variables)
      for name in (again[0], again[2]))


def test_tables_of_a_model_that_is_there_are_not_split():
  with pytest.raises(errors.GdpError, match='give a function that makes it'):
    _placed(_words(), split_tables={'embedding*': 4})


@pytest.mark.parametrize('graph, given, said', [
    (lambda: 1, {}, 'returned int'),
    (lambda: tf.Variable(tf.ones, shape=[]) + 1, {}, 'raised '),
    (tf.function(lambda x: x), {'data': np.zeros(3)}, 'data is for Keras'),
    ('rnnlm-2@tiny', {'data': np.zeros(3)}, 'takes none'),
])
def test_what_takes_no_batch_says_so(graph, given, said):
  with pytest.raises(errors.GdpError, match=said):
    _placed(graph, **given)


def test_a_signature_by_name_is_not_taken_for_its_names():
  function = tf.function(lambda x, scale: tf.matmul(x, x) * scale)
  spec = tf.TensorSpec((4, 4), tf.float32)
  by_name = _placed(
      function, signature={'scale': tf.TensorSpec((), tf.float32),
                           'x': spec}).graph
  in_order = _placed(function, signature=(spec, tf.TensorSpec(
      (), tf.float32))).graph
  assert sorted(by_name.op_types) == sorted(in_order.op_types)
  assert 'MatMul' in by_name.op_types


def test_inputs_of_a_model_by_name():
  inputs = {name: keras.Input((3,), name=name) for name in ('a', 'b')}
  model = keras.Model(inputs, inputs['a'] @ keras.ops.transpose(inputs['b']))
  signature = {name: tf.TensorSpec((5, 3), tf.float32) for name in inputs}
  assert 'MatMul' in _placed(model, signature=signature).graph.op_types
