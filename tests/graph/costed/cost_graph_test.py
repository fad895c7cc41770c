"""CostGraphDefs, as TensorFlow writes them and as they should not be."""

import pathlib

from google.protobuf import text_format
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import cost_graph_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler.graph.costed import cost_graph

tf1 = tf.compat.v1
_TESTDATA = pathlib.Path(__file__).parents[2] / 'testdata'


@pytest.fixture(scope='module', name='metadata')
def _metadata():
  """What TensorFlow measured of a step on two CPUs."""
  with tf.Graph().as_default():
    x = tf1.placeholder(tf.float32, [8, 16], name='x')
    old = tf1.get_variable('old', [16, 4], use_resource=False)
    new = tf1.get_variable('new', [4, 4], use_resource=True)
    with tf.device('/cpu:1'):
      y = tf.matmul(x, old, name='y')
    z = tf.reshape(tf.matmul(y, new, name='z'), [-1], name='flat')
    loss = tf.reduce_mean(tf.square(z), name='loss')
    config = tf1.ConfigProto(device_count={'CPU': 2})
    config.graph_options.build_cost_model = 1
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    result = tf1.RunMetadata()
    with tf1.Session(config=config) as session:
      session.run(tf1.global_variables_initializer())
      options = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE)
      for _ in range(2):
        session.run(loss, {x: np.ones([8, 16])}, options, result)
  return result


def _forms(metadata):
  graph = metadata.cost_graph
  return [
      str(graph).encode(),
      graph.SerializeToString(),
      str(metadata).encode(),
      metadata.SerializeToString()
  ]


def test_all_four_forms_are_one_graph(metadata):
  graphs = []
  for data in _forms(metadata):
    assert cost_graph.is_cost_graph(data)
    graph, costs = cost_graph.read('some/step.pbtxt', data)
    graphs.append(graph)
    by_name = dict(zip(graph.names, costs.seconds[''].tolist()))
    assert by_name == {
        node.name: pytest.approx(node.compute_cost * 1e-6)
        for node in metadata.cost_graph.node if node.name in by_name
    }
  assert len({graph.fingerprint for graph in graphs}) == 1
  assert graphs[0].name == 'step'


def test_sizes_memory_and_edges_are_those_of_the_step(metadata):
  graph, _ = cost_graph.read('g', metadata.cost_graph.SerializeToString())
  sizes = dict(zip(graph.names, graph.output_bytes.tolist()))
  held = dict(zip(graph.names, graph.param_bytes.tolist()))
  types = dict(zip(graph.names, graph.op_types))
  edges = {(graph.names[a], graph.names[b]) for a, b in graph.edges}
  assert sizes['y'] == sizes['z'] == 8 * 4 * 4 and sizes['loss'] == 4
  assert held['old'] == 16 * 4 * 4 and held['new'] == 4 * 4 * 4
  assert types['old'] == 'VariableV2' and types['flat'] == 'Identity'
  assert types['z/ReadVariableOp'] == 'ReadVariableOp'
  # What was sent to another device and back is one edge again.
  assert ('y', 'z') in edges and ('old/read', 'y') in edges
  assert not [name for name in graph.names if '/_' in name]
  assert graph.allowed_types.all()
  assert {device[-5:] for device in graph.devices} == {'CPU:0', 'CPU:1'}


def test_the_enum_is_that_of_tensorflow():
  ours = cost_graph._messages()['CostGraphDef'].DESCRIPTOR.fields_by_name[
      'node'].message_type.fields_by_name['output_info'].message_type
  ours = {
      v.name: v.number for v in ours.fields_by_name['dtype'].enum_type.values
  }
  assert ours == dict(types_pb2.DataType.items())


@pytest.mark.parametrize(
    'name', ['dense_train_step.pb', 'lstm_train_step.pb', 'two_cards.pbtxt'])
def test_other_graphs_are_none(name):
  assert not cost_graph.is_cost_graph((_TESTDATA / name).read_bytes())


def test_graph_defs_are_none():
  with tf.Graph().as_default() as graph:
    tf.sin(tf1.placeholder(tf.float32, [2], name='compute_cost'))
  definition = graph.as_graph_def()
  for data in (text_format.MessageToString(definition).encode(),
               definition.SerializeToString(), b'', b'node {', b'text',
               b'\x0a\x00'):
    assert not cost_graph.is_cost_graph(data)


def _graph(text):
  return text_format.Parse(text, cost_graph_pb2.CostGraphDef())


_CHAIN = '''
  node { name: "a" id: 1 device: "/device:GPU:0"
         output_info { size: 8 alias_input_port: -1 } compute_cost: 5 }
  node { name: "b" id: 2 device: "/device:CPU:0" input_info {
         preceding_node: 1 } control_input: 1 temporary_memory_size: 3
         output_info { size: -1 alias_input_port: -1 } }
  node { name: "c" id: 3 input_info { preceding_node: 2 preceding_port: 1 } }
  '''


def test_where_a_gpu_ran_types_stay():
  graph, costs = cost_graph.read('g', str(_graph(_CHAIN)).encode())
  assert graph.allowed_types.tolist() == [[False, True], [True, False],
                                          [True, True]]
  assert graph.output_bytes.tolist() == [8, 0, 0]
  assert graph.edges.tolist() == [[0, 1], [0, 1], [1, 2]]
  assert costs.workspace_bytes.tolist() == [0, 3, 0]
  assert costs.seconds[''].tolist() == [5e-6, 0, 0]


def test_a_file_that_tells_no_aliases_has_none():
  text = _CHAIN.replace('alias_input_port: -1', '')
  graph, _ = cost_graph.read('g', text.encode())
  assert set(graph.op_types) == {'CostGraphNode'}


@pytest.mark.parametrize(
    'old, new, said',
    [('name: "b"', 'name: "a"', 'node "a": it appears twice'),
     ('name: "b"', '', r'node\[1\]: "name" is missing'),
     ('id: 2', 'id: 1', 'field "id": 1 is the id of another'),
     ('preceding_node: 1', 'preceding_node: 9',
      r'"b", field "input_info\[0\].preceding_node": there is no node of id 9'),
     ('control_input: 1', 'control_input: 9',
      r'"b", field "control_input\[0\]": there is no node of id 9'),
     ('preceding_port: 1', 'preceding_port: -1', 'preceding_port": it is -1'),
     ('size: 8', 'size: -8', r'"a", field "output_info\[0\].size": it is -8'),
     ('compute_cost: 5', 'compute_cost: -5', '"a", field "compute_cost"'),
     ('temporary_memory_size: 3', 'temporary_memory_size: -3',
      '"b", field "temporary_memory_size": it is -3'),
     ('control_input: 1', 'control_input: 3', 'cycle, "(b|c)" -> "(b|c)"'),
     ('compute_cost: 5', 'compute_cost: many', 'damaged CostGraphDef')])
def test_what_is_wrong_is_said_with_file_and_field(old, new, said):
  data = _CHAIN.replace(old, new, 1).encode()
  assert cost_graph.is_cost_graph(data)
  with pytest.raises(errors.InvalidGraphError, match=said) as raised:
    cost_graph.read('some.pbtxt', data)
  assert str(raised.value).startswith('some.pbtxt')
