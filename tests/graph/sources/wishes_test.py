import pytest
import tensorflow as tf
from tensorflow.core.framework import node_def_pb2
import tf_keras

from gdp_grappler import variable_scopes
from gdp_grappler.graph.legality import asked
from gdp_grappler.graph.sources import wishes
from helpers import graph_defs


@tf.function
def _inner(x):
  with tf.device('/CPU:1'):
    return tf.sin(x)


@tf.function
def _outer(x):
  i = tf.constant(0)
  while i < 3:
    with tf.device('/CPU:2'):
      x = tf.cos(x)
    i += 1
  return _inner(tf.exp(x))


def _concrete(function):
  return function.get_concrete_function(tf.constant(1.))


def test_functions_that_are_called_are_looked_at():
  found = wishes.of_function(_concrete(_outer).name.decode())
  devices = {
      name.rsplit('/', 1)[-1]: d for (_, name), d in found.devices.items()
  }
  assert devices['Sin'] == '/device:CPU:1'
  assert devices['Cos'] == '/device:CPU:2'
  assert 'Exp' not in devices
  assert found.is_known and found.digest


def test_node_is_found_by_where_it_came_from():
  name = _concrete(_inner).name.decode()
  found = wishes.of_function(name)
  node = node_def_pb2.NodeDef(name='anything', op='Sin')
  assert not found.of(node, 'f')
  node.experimental_debug_info.original_node_names.append('Sin')
  node.experimental_debug_info.original_func_names.append(name)
  assert found.of(node, 'f') == '/device:CPU:1'


def test_composition_is_found_by_the_calls_before_it():
  found = wishes.Wishes({('g', 'Sin'): '/device:CPU:1'}, {('f', 'call'): 'g'})
  node = node_def_pb2.NodeDef(name='call/Sin/unary_ops_composition',
                              op='_UnaryOpsComposition')
  assert found.of(node, 'f') == '/device:CPU:1'
  node.name = 'Sin/unary_ops_composition'
  assert not found.of(node, 'f')


def test_digest_does_not_depend_on_numbers_of_functions():
  one, two = (wishes.Wishes({(f, 'Sin'): '/device:CPU:1'}) for f in 'fg')
  assert one.digest == two.digest != wishes.Wishes({('f', 'Sin'):
                                                        '/device:CPU:2'}).digest
  assert not wishes.NONE.digest and not wishes.UNKNOWN.is_known


def test_graph_of_a_session():
  with tf.Graph().as_default() as graph:
    with tf.device('/gpu:1'):
      tf.constant(1., name='a')
    tf.constant(1., name='b')
  assert wishes.of_graph(graph, 'g').devices == {('g', 'a'): '/device:GPU:1'}


def test_traced_step_is_marked():
  concrete = _concrete(_inner)
  name = concrete.name.decode()
  graph_def = graph_defs.graph_def(graph_defs.node('Sin', 'Sin'))
  info = graph_def.node[0].experimental_debug_info
  info.original_node_names.append('Sin')
  info.original_func_names.append(name)
  wishes.mark_traced(graph_def, {name: concrete})
  assert asked.device(graph_def.node[0]) == '/device:CPU:1'


@pytest.mark.parametrize('device', ['', '/device:CPU:1'])
def test_variables_are_marked(monkeypatch, device):
  monkeypatch.setattr(variable_scopes, 'device', lambda variable: device)
  node = graph_defs.node('v', '_Arg')
  wishes.mark_variable(node, 'variable')
  assert asked.device(node) == device


@pytest.mark.parametrize('name', ['SGD', 'Adam', 'RMSprop'])
def test_scopes_of_legacy_optimizers_are_no_requests(name):
  """The line of a step said that 46 ops stay where tf.device put them."""
  variable_scopes.watch()
  optimizer = getattr(tf_keras.optimizers.legacy, name)()
  table, row = tf.Variable(tf.ones((4, 2))), tf.Variable([1., 2.])

  @tf.function
  def step(ids):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.gather(table, ids) * row)
    with tf.device('/CPU:1'):
      asked_for = tf.sin(loss)
    weights = [table, row]
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return asked_for

  concrete = step.get_concrete_function(tf.constant([1, 2]))
  assert any(
      n.device.endswith('CPU:0') for n in concrete.graph.as_graph_def().node)
  found = wishes.of_function(concrete.name.decode())
  assert set(found.devices.values()) == {'/device:CPU:1'}
