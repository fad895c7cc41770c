"""Tests of gdp_grappler.graph.start_order."""

import collections

import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import start_order
from helpers import graph_defs

tf1 = tf.compat.v1
_GPU = '/job:localhost/replica:0/task:0/device:GPU:'
_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'
_ORDERED = 8  # Followers that TensorFlow keeps in order.


def _node(name, op='Const', *inputs, device=_GPU + '0'):
  node = tf1.NodeDef(name=name, op=op, device=device)
  node.input.extend(inputs)
  return node


def _fixed(*nodes):
  return start_order.fix(graph_defs.graph_def(*nodes))


def _starts(graph):
  """Ops in the order in which an executor starts them, first in, first out."""
  followers = collections.defaultdict(list)
  waits = {}
  for node in graph.node:
    waits[node.name] = len(node.input)
    for name in node.input:
      followers[name.strip('^').split(':')[0]].append(node.name)
  result = [node.name for node in graph.node if not node.input]
  for name in result:  # Grows in the loop.
    for follower in followers[name]:
      waits[follower] -= 1
      if not waits[follower]:
        result.append(follower)
  return result, followers


@pytest.mark.parametrize('count', [2, 8, 9, 64, 65, 600])
def test_triggers_start_the_ops_in_the_order_of_the_graph(count):
  names = [f'op{i}' for i in range(count)]
  graph = _fixed(*map(_node, names))
  order, followers = _starts(graph)
  assert [name for name in order if name in names] == names
  assert max(map(len, followers.values())) <= _ORDERED
  assert [node.name for node in graph.node[:count]] == names
  added = graph.node[count:]
  assert {node.op for node in added} == {'ControlTrigger'}
  assert {node.device for node in added} == {_GPU + '0'}


def test_ops_start_after_all_arguments_of_their_function():
  """Arguments come in any order, and the reads of variables follow them."""
  arguments = [_node(f'arg{i}', '_Arg') for i in range(20)]
  reads = [_node(f'read{i}', 'ReadVariableOp', f'arg{i}') for i in range(20)]
  graph = _fixed(*arguments, *reads)
  assert not any(node.input for node in graph.node[:20])
  for shuffled in (graph.node[:20], list(graph.node[:20])[::-1]):
    # The top trigger may come first of all.
    nodes = [*graph.node[40:], *shuffled, *graph.node[20:40]]
    order, _ = _starts(graph_defs.graph_def(*nodes))
    assert [name for name in order if name.startswith('read')
           ] == [f'read{i}' for i in range(20)]


def test_each_gpu_has_triggers_of_its_own():
  graph = _fixed(*(_node(f'op{i}', device=f'{_GPU}{i % 2}') for i in range(20)))
  device = {node.name: node.device for node in graph.node}
  for node in graph.node:
    assert {device[name.strip('^')] for name in node.input} <= {node.device}


@pytest.mark.parametrize('nodes', [
    (_node('a', device=_CPU), _node('b', device=_CPU)),
    (_node('a', device=''), _node('b', device='')),
    (_node('a'), _node('b', device=_GPU + '1')),
    (_node('a', 'Placeholder'), _node('b', 'Placeholder')),
    (_node('a', '_Arg'), _node('b', '_Retval', 'a'), _node('c', '_Retval',
                                                           'a')),
    (_node('a'), _node('b', 'Identity', 'a'), _node('c', 'Const', '^a')),
    (_node('a', '_Arg', device=_CPU), _node(
        'b', 'ReadVariableOp', 'a'), _node('c', 'ReadVariableOp', 'a')),
])
def test_other_ops_stay_as_they_were(nodes):
  assert _fixed(*nodes) == graph_defs.graph_def(*nodes)


def _chain():
  nodes = [_node(f'op{i}') for i in range(9)]
  nodes.append(_node('last', 'Identity', 'op0', '^op1'))
  # A scope and an op of the user.
  nodes.append(_node('gdp_start_order/own', 'ControlTrigger', '^op2'))
  return nodes


def test_the_order_is_dropped_for_another_placement():
  graph = _fixed(*_chain())
  before = type(graph).FromString(graph.SerializeToString())
  assert start_order.dropped(graph) == graph_defs.graph_def(*_chain())
  assert graph == before


def test_a_graph_without_an_order_is_not_copied():
  graph = graph_defs.graph_def(*_chain())
  assert start_order.dropped(graph) is graph


def test_the_order_is_dropped_under_the_names_of_an_import():
  """Old triggers were known by their names, so those in a scope stayed."""

  def make():
    with tf.device(_GPU + '0'):
      tf.add_n([tf.constant(float(i)) for i in range(20)])

  placed = graph_defs.built(make)
  fixed = start_order.fix(placed)
  for definition in (
      graph_defs.built(lambda: tf.graph_util.import_graph_def(fixed, name='a')),
      start_order.fix(
          graph_defs.built(
              lambda: tf.graph_util.import_graph_def(placed, name='a')))):
    assert any(node.op == 'ControlTrigger' for node in definition.node)
    found = start_order.dropped(definition)
    assert {node.name: list(node.input) for node in found.node} == {
        f'a/{node.name}': [f'a/{name}' for name in node.input]
        for node in placed.node
    }


def test_what_ops_wait_for_through_the_order_they_wait_for_directly():
  """Triggers wait, too, if a program imports them within a scope that waits."""
  graph = _fixed(*(_node(f'op{i}') for i in range(9)))
  for node in graph.node[9:]:
    node.input.append('^before')
  leaf = next(name for name in graph.node[0].input)
  graph.node.append(_node('before', 'NoOp'))
  graph.node.append(_node('after', 'Identity', 'op0', leaf))
  found = {n.name: list(n.input) for n in start_order.dropped(graph).node}
  assert found == {
      **{f'op{i}': ['^before'] for i in range(9)}, 'before': [],
      'after': ['op0', '^before']
  }


def test_triggers_stay_out_of_clusters_of_xla():
  graph = _fixed(*(_node(f'op{i}') for i in range(9)))
  for node in graph.node[9:]:
    assert '_XlaCompile' in node.attr and not node.attr['_XlaCompile'].b


def test_a_graph_can_be_fixed_twice():
  once = _fixed(*(_node(f'op{i}') for i in range(9)))
  assert start_order.fix(once) == once
  for node in once.node:
    node.device = _GPU + '1'
  for i in range(3):
    once.node.append(_node(f'new{i}', device=_GPU + '1'))
  names = [node.name for node in start_order.fix(once).node]
  assert len(names) == len(set(names)) > len(once.node)


def test_a_graph_that_is_too_large_is_one_clear_error(monkeypatch):
  # Such a graph would take seconds.
  monkeypatch.setattr(start_order._library(), 'gdp_order_starts',
                      lambda *_: None)
  with pytest.raises(errors.GdpError, match='more than 2 GB.*Keep its weights'):
    _fixed(_node('a'))


def _with_variables():
  """Builds 40 constants and 12 variables on two GPUs; returns initializers."""
  with tf.device(_GPU + '0'):
    total = tf.add_n([tf.constant(float(i)) for i in range(40)])
  variables = []
  for i in range(12):
    with tf.device(f'{_GPU}{i % 2}'):
      variables.append(tf1.get_variable(f'v{i}', initializer=float(i)))
  with tf.device(_GPU + '1'):
    tf.identity(total * tf.add_n([v.read_value() for v in variables]),
                name='result')
  return [v.initializer.name for v in variables]


def _ran(definition, initializers):
  """Returns the result and the graphs of the devices on two logical CPUs."""
  for node in definition.node:  # This machine has no GPUs.
    node.device = node.device.replace('GPU', 'CPU')
  with tf.Graph().as_default():
    tf.import_graph_def(definition, name='')
    config = tf1.ConfigProto(allow_soft_placement=False,
                             device_count={'CPU': 2})
    options = tf1.RunOptions(output_partition_graphs=True)
    with tf1.Session(config=config) as session:
      session.run(initializers)
      ran = tf1.RunMetadata()
      result = session.run('result:0', options=options, run_metadata=ran)
  return result, ran.partition_graphs


def _count(graph, op):
  return sum(node.op == op for node in graph.node)


def test_a_fixed_graph_has_equal_results_on_several_devices():
  initializers = []
  plain = graph_defs.built(lambda: initializers.extend(_with_variables()))
  result, graphs = _ran(start_order.fix(plain), initializers)
  expected, without = _ran(plain, initializers)
  assert result == expected == 780. * 66
  assert len(graphs) == 2
  assert all(_count(graph, 'ControlTrigger') > 1 for graph in graphs)
  # A tree that began on another device would be one more tensor to send.
  for op in ('_Send', '_HostSend'):
    assert sum(_count(graph, op) for graph in graphs) == sum(
        _count(graph, op) for graph in without)
