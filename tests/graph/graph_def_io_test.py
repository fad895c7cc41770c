import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import presets
from gdp_grappler.graph import graph_def_io
from helpers import graph_defs

tf1 = tf.compat.v1
_IDENTITY = {'T': graph_defs.FLOAT}


def _read(*nodes, feeds=(), fetches=(), **options):
  return graph_def_io.read(
      graph_defs.source(graph_defs.graph_def(*nodes), feeds=feeds,
                        fetches=fetches), **options)


def _placeholder(name, **fields):
  return graph_defs.node(name, 'Placeholder', dtype=graph_defs.FLOAT, **fields)


def _identity(name, source, **fields):
  return graph_defs.node(name, 'Identity', [source], **_IDENTITY, **fields)


def test_ops_edges_and_tensors():

  def make():
    a = tf1.placeholder(tf.float32, [4, 2], 'a')
    b, _ = tf.split(a, 2, axis=tf.constant(1, name='axis'), name='b')
    with tf.control_dependencies([a]):
      zero = tf.constant(0, name='zero')
    tf.concat([b, b], zero, name='c')

  graph = graph_defs.read(make)
  index = {name: i for i, name in enumerate(graph.names)}
  a, b, c, zero = (index[name] for name in ('a', 'b', 'c', 'zero'))
  assert graph.op_types[b] == 'Split'
  edges = list(zip(map(tuple, graph.edges.tolist()), graph.edge_bytes.tolist()))
  assert edges.count(((b, c), 16)) == 2
  assert ((a, b), 32) in edges and ((a, zero), 0) in edges
  assert graph.edge_tensors[edges.index(((a, zero), 0))] == -1
  assert graph.tensor_bytes[graph.tensor_ops == b].tolist() == [16, 16]


def test_unknown_dimensions_count_as_told():
  definition = graph_defs.built(
      lambda: tf1.placeholder(tf.float32, [None, 3], 'a'))
  for size in (1, 50):
    graph = graph_def_io.read(graph_defs.source(definition), unknown_dim=size)
    assert graph.tensor_bytes.tolist() == [12 * size]


def test_unknown_dimensions_of_variables_count_as_told():
  handle = graph_defs.node('v', 'VarHandleOp', dtype=graph_defs.FLOAT)
  handle.attr['shape'].shape.CopyFrom(tf.TensorShape([None, 3]).as_proto())
  assert _read(handle, unknown_dim=5).param_bytes.tolist() == [60]


def test_variables_hold_their_bytes():

  def make():
    tf1.Variable(tf.zeros([3, 4]), use_resource=True, name='resource')
    tf1.Variable(tf.zeros([5], tf.float64), use_resource=False, name='ref')
    tf1.Variable('text', name='string')

  graph = graph_defs.read(make)
  held = {name: n for name, n in zip(graph.names, graph.param_bytes) if n}
  assert held == {'resource': 48, 'ref': 40}


def test_loop_carried_edges_are_left_out():

  def make():
    tf1.disable_control_flow_v2()
    try:
      tf1.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    finally:
      tf1.enable_control_flow_v2()

  graph = graph_defs.read(make)
  assert 'NextIteration' in graph.op_types
  assert len(graph.topological_order) == graph.num_ops


def test_write_adds_control_edges_once():
  definition = graph_defs.graph_def(_placeholder('a'), _identity('b', 'a'),
                                    _identity('c', 'a'))
  definition.node[2].input.append('^b')
  placed = graph_def_io.write(definition, ['x'] * 3, [(1, 2), (0, 1), (0, 1)])
  assert [list(node.input) for node in placed.node] == [[], ['a', '^a'],
                                                        ['a', '^b']]
  assert list(definition.node[1].input) == ['a']


@pytest.mark.parametrize('edge', [(1, 1), (0, 2), (-1, 0)])
def test_write_refuses_control_edges_between_no_nodes(edge):
  definition = graph_defs.graph_def(_placeholder('a'), _identity('b', 'a'))
  first, then = edge
  with pytest.raises(ValueError, match=f'from node {first} to node {then}'):
    graph_def_io.write(definition, ['x', 'y'], [edge])


def test_write_changes_devices_only():
  definition = graph_defs.graph_def(_placeholder('a', device='old'),
                                    _identity('b', 'a'))
  placed = graph_def_io.write(definition, ['x', 'y'])
  assert [n.device for n in placed.node] == ['x', 'y']
  assert definition.node[0].device == 'old'
  for node in placed.node:
    node.device = ''
  definition.node[0].device = ''
  assert placed == definition
  with pytest.raises(ValueError, match='1 devices for 2 nodes'):
    graph_def_io.write(definition, ['x'])


@pytest.mark.parametrize(
    'nodes, message',
    [
        ([], 'is empty'),
        ([_placeholder('a'), _placeholder('a')], 'two nodes of the same name'),
        ([_identity('b', 'gone')], '"b" of graph "test" has an input "gone"'),
        ([graph_defs.node('b', 'NoOp', ['^gone'])], 'has an input "\\^gone"'),
        ([_placeholder('a'), _identity('b', 'a:x')], 'has an input "a:x"'),
        ([_placeholder('a'), _identity('b', 'a:')], 'has an input "a:"'),
        ([_placeholder('a'), _identity('b', 'a:99999999999')], 'has an input'),
        ([_placeholder('a'), _identity('b', 'a:3')], 'src_output = 3'),
        ([_identity('a', 'b'), _identity('b', 'a')], '"[ab]" waits for its'),
        ([_identity('a', 'a')], 'the op "a" waits for its'),
        ([graph_defs.node('a', 'NoSuchOp')], 'not registered'),
        # Grappler would abort the process.
        ([graph_defs.node('a', 'Const', dtype={'type': 1})
         ], '"a" .Const. lacks the attribute "value"'),
    ])
def test_graphs_that_cannot_be_read(nodes, message):
  with pytest.raises(errors.InvalidGraphError, match=message) as error:
    _read(*nodes)
  assert '\n' not in str(error.value)


def test_pins_of_ops_that_stay():
  text = graph_defs.node('s', 'StringUpper', ['t'])
  graph = _read(graph_defs.node('t', 'Placeholder', dtype={'type': 7}), text,
                _placeholder('a'), _identity('b', 'a'))
  assert graph.pins == ('CPU:0', 'CPU:0', 'CPU:0', '')
  assert not graph.user_pins.any()


def test_callers_nodes_stay_where_they_are_when_live():
  graph = _read(_placeholder('a', device=graph_defs.CPU(1)),
                _identity('b', 'a', device=graph_defs.CPU(1)),
                _identity('c', 'b', device=graph_defs.CPU(2)), live=True,
                feeds=('a',), fetches=('c:0',))
  assert graph.pins == (graph_defs.CPU(1), '', graph_defs.CPU(2))


def _variable_step(pin_on_read=b'', pin_on_variable=b''):
  shape = tf.TensorShape([2]).as_proto()
  handle = graph_defs.node('v', 'VarHandleOp', device=graph_defs.CPU(1),
                           dtype=graph_defs.FLOAT)
  handle.attr['shape'].shape.CopyFrom(shape)
  read = graph_defs.node('read', 'ReadVariableOp', ['v'],
                         device=graph_defs.CPU(1), dtype=graph_defs.FLOAT)
  for node, pin in ((handle, pin_on_variable), (read, pin_on_read)):
    if pin:
      node.attr['_gdp_pin'].s = pin
  return handle, read, _identity('x', 'read', device=graph_defs.CPU(1))


def test_live_variables_stay_and_others_move():
  live = graph_defs.pins(_read(*_variable_step(), live=True))
  free = graph_defs.pins(_read(*_variable_step()))
  assert live == {'v': graph_defs.CPU(1), 'read': '', 'x': ''}
  assert free == {'v': '', 'read': '', 'x': ''}


def test_pin_on_a_read_means_nothing_and_on_a_variable_moves_it():
  on_read = _read(*_variable_step(pin_on_read=b'CPU:2'))
  assert on_read.pins == ('', '', '') and not on_read.user_pins.any()
  on_variable = _read(*_variable_step(pin_on_variable=b'CPU:2'))
  assert on_variable.pins == ('CPU:2', '', '')
  assert on_variable.user_pins.tolist() == [True, False, False]
  live = _read(*_variable_step(pin_on_variable=b'CPU:2'), live=True)
  assert live.pins == (graph_defs.CPU(1), '', '')
  assert not live.user_pins.any()


def test_relocatable_variables_are_those_that_are_received():
  handle = {
      'T': {'type': types_pb2.DT_RESOURCE},
      '_handle_dtypes': {'list': {'type': [types_pb2.DT_FLOAT]}}
  }
  read = {'dtype': graph_defs.FLOAT}
  nodes = [
      graph_defs.node('v', '_Arg', device=graph_defs.CPU(1), **handle),
      graph_defs.node('read', 'ReadVariableOp', ['v'], device=graph_defs.CPU(1),
                      **read),
      graph_defs.node('own', 'VarHandleOp', device=graph_defs.CPU(1),
                      shape={'shape': {}}, **read),
      _placeholder('fed', device=graph_defs.CPU(1)),
  ]
  fixed = graph_defs.pins(_read(*nodes, live=True))
  assert set(fixed.values()) == {'', graph_defs.CPU(1)} and fixed['v']
  free = graph_defs.pins(_read(*nodes, live=True, relocatable=True))
  assert free == fixed | {'v': ''}


@pytest.mark.parametrize('dtype, on_gpu', [(types_pb2.DT_INT32, False),
                                           (types_pb2.DT_STRING, False),
                                           (types_pb2.DT_INT64, True)])
def test_the_argument_of_a_variable_goes_where_the_variable_can_be(
    dtype, on_gpu):
  """A plan moved an int32 variable to a GPU, and was dropped as a whole."""
  node = graph_defs.node('v', '_Arg', device=graph_defs.CPU(0),
                         T={'type': types_pb2.DT_RESOURCE},
                         _handle_dtypes={'list': {'type': [dtype]}})
  graph = _read(node, live=True, relocatable=True)
  assert graph.allowed_types.tolist() == [[True, on_gpu]]


def test_ops_of_the_hosts_memory_launch_no_kernel_on_gpus():
  """Sums of int32 were priced as kernels, but their tensors are on the host."""

  def make():
    for dtype in tf.int32, tf.float32:
      x = tf1.placeholder(dtype, [2])
      tf.raw_ops.AddV2(x=x, y=x, name=f'sum_of_{dtype.name}')

  read = graph_defs.read(make)
  assert 'sum_of_int32' in read.host_ops
  assert 'sum_of_float32' not in read.host_ops


def test_a_handle_of_no_type_is_read():
  """Regression: an empty list of types was an IndexError."""
  for types in ({}, {'type': []}, {'type': [types_pb2.DT_INVALID]}):
    graph = _read(
        graph_defs.node('v', '_Arg', T={'type': types_pb2.DT_RESOURCE},
                        _handle_dtypes={'list': types}))
    assert graph.param_bytes.tolist() == [0]


def test_groups_that_tensorflow_spread_stay_as_they_are():
  common = {'_class': (b'loc:@a',)}
  graph = _read(_placeholder('a', device=graph_defs.CPU(0)),
                _identity('b', 'a', device=graph_defs.CPU(0), **common),
                _identity('c', 'a', device=graph_defs.CPU(1), **common),
                live=True)
  assert len(set(graph.groups)) == 3
  assert graph.pins == tuple(map(graph_defs.CPU, (0, 0, 1)))


def test_a_pin_in_a_spread_group_does_not_hold():
  """The device that the op kept counted as the user's pin."""
  graph = _read(
      _placeholder('a', device=graph_defs.CPU(0)),
      *(_identity(name, 'a', device=graph_defs.CPU(i), _class=(b'loc:@a',),
                  _gdp_pin=graph_defs.CPU(1).encode())
        for i, name in enumerate('bc')), live=True)
  assert graph.pins == tuple(map(graph_defs.CPU, (0, 0, 1)))
  assert graph.user_pins.tolist() == [False, False, True]


def test_a_node_may_stay_where_no_kernel_is_registered():
  node = graph_defs.node('s', 'MatMul', ['t', 't'], device=graph_defs.GPU(0),
                         T={'type': 3})
  text = graph_defs.node('t', 'Placeholder', dtype={'type': 3})
  assert _read(text, node, live=True).allowed_types[1].tolist() == [True, True]
  assert _read(text, node).allowed_types[1].tolist() == [True, False]


def test_fused_and_channels_first_kernels_keep_their_type_when_live():
  conv = graph_defs.node('c', 'BiasAdd', ['a', 'a'], device=graph_defs.GPU(0),
                         T=graph_defs.FLOAT, data_format=b'NCHW')
  graph = _read(_placeholder('a'), conv, live=True)
  assert graph.allowed_types[1].tolist() == [False, True]
  assert _read(_placeholder('a'), conv).allowed_types[1].all()


def test_conflicting_pins_of_a_group_are_explained():
  graph = _read(
      graph_defs.node('a', 'NoOp', _gdp_pin=b'GPU:0'),
      graph_defs.node('b', 'NoOp', _gdp_pin=b'GPU:1', _class=(b'loc:@a',)))
  with pytest.raises(
      errors.InfeasiblePlacementError,
      match=r'b \(NoOp, pinned to GPU:1\) may be on GPU:1; '
      r'a \(NoOp, pinned to GPU:0\) may be on GPU:0. '
      'Remove a pin'):
    constraints.allowed_devices(graph, presets.preset('2xP100'))


@pytest.mark.parametrize('pin', [b'GPU:7', b'hello', b'\xff\xfe', b'TPU:0'])
def test_pins_that_name_no_device(pin):
  graph = _read(graph_defs.node('a', 'NoOp', _gdp_pin=pin))
  with pytest.raises(errors.InfeasiblePlacementError,
                     match='"a" is pinned to .* remove the pin'):
    constraints.allowed_devices(graph, presets.preset('2xP100'))


def test_leave_alone_keeps_the_device():
  alone = {'_gdp_leave_alone': {'b': True}}
  graph = _read(graph_defs.node('a', 'NoOp', device='/gpu:1', **alone),
                graph_defs.node('b', 'NoOp', **alone))
  assert graph.pins == ('/gpu:1', '/device:GPU:0')
  allowed = constraints.allowed_devices(graph, presets.preset('2xP100'))
  assert np.argwhere(allowed).tolist() == [[0, 2], [1, 1]]


@pytest.mark.parametrize('op, live, stays', [('RandomUniform', True, True),
                                             ('RandomUniform', False, False),
                                             ('Square', True, False)])
def test_a_stream_of_random_numbers_stays_where_it_runs(op, live, stays):
  shape = graph_defs.node('shape', 'Placeholder', device=graph_defs.CPU(1),
                          dtype={'type': 3})
  node = graph_defs.node('a', op, ['shape'], graph_defs.CPU(1), T={'type': 3},
                         dtype={'type': 1})
  assert bool(_read(shape, node, live=live).pins[1]) == stays
