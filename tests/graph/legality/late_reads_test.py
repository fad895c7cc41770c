"""Which readers share a device with a buffer that a step changes."""

import tracemalloc

import numpy as np
import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import node_table
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import late_reads
from gdp_grappler.graph.legality import node_types
from helpers import graph_defs

tf1 = tf.compat.v1


def _variable():
  return tf1.Variable([1., 2.], use_resource=False, name='v')


def _with(op, make):
  """The ops that share a group with `op`."""
  groups = graph_defs.groups(graph_defs.read(make))
  return {name for name, group in groups.items() if group == groups[op]}


def test_readers_after_an_update_stay_with_a_reference_variable():
  """On another host they once read a copy that was made before the update."""

  def make():
    v = _variable()
    row = tf.reshape(v, [1, 2], name='row')
    tf.exp(row, name='early')
    with tf1.control_dependencies([v.assign_add([1., 1.], name='update')]):
      tf.sin(row, name='late')
      tf.cos(tf.constant([1., 2.]), name='other')

  found = _with('v', make)
  assert {'v/read', 'row', 'update', 'late'} <= found
  assert not found & {'early', 'other'}


def test_readers_that_the_program_does_not_order_are_free():

  def make():
    v = _variable()
    v.assign_add([1., 1.], name='update')
    tf.sin(v, name='reader')

  assert 'reader' not in _with('v', make)


def test_readers_of_a_value_that_was_read_late_are_free():

  def make():
    v = _variable()
    with tf1.control_dependencies([v.assign_add([1., 1.], name='update')]):
      again = tf.identity(v, name='again')
    tf.sin(again, name='after')

  found = _with('v', make)
  assert 'again' in found and 'after' not in found


def test_readers_of_an_update_are_free_until_the_next_update():

  def make():
    v = _variable()
    first = tf1.assign_add(v, [1., 1.], name='first')
    tf.sin(first, name='between')
    with tf1.control_dependencies([first]):
      second = tf1.assign_add(v, [1., 1.], name='second')
    with tf1.control_dependencies([second]):
      tf.cos(first, name='late')

  found = _with('v', make)
  assert {'first', 'second', 'late'} <= found and 'between' not in found


def test_the_update_of_another_variable_does_not_count():

  def make():
    v = _variable()
    other = tf1.Variable([1., 2.], use_resource=False, name='other')
    with tf1.control_dependencies([other.assign_add([1., 1.])]):
      tf.sin(v, name='reader')

  assert 'reader' not in _with('v', make)


def test_a_value_that_a_condition_hands_on_is_read_late():

  def make():
    v = _variable()
    no, yes = tf1.raw_ops.Switch(data=v, pred=tf1.placeholder(tf.bool, []),
                                 name='switch')
    merged, _ = tf1.raw_ops.Merge(inputs=[no, tf.exp(yes)], name='merge')
    with tf1.control_dependencies([v.assign_add([1., 1.])]):
      tf.sin(merged, name='late')

  assert {'switch', 'merge', 'late'} <= _with('v', make)


def test_ops_that_tensorflow_put_on_several_devices_are_not_joined():
  """TensorFlow copies there, too; a group of such ops would not be placed."""

  def make():
    with tf1.device(graph_defs.GPU(0)):
      v = _variable()
      update = v.assign_add([1., 1.], name='update')
    with tf1.control_dependencies([update]), tf1.device(graph_defs.CPU(0)):
      tf.sin(v, name='late')

  assert 'late' not in _with('v', make)


def test_a_reader_without_a_kernel_for_gpus_leaves_the_variable_free():

  def make():
    v = _variable()
    with tf1.control_dependencies([v.assign_add([1., 1.])]):
      tf1.summary.histogram('late', v)

  assert 'late' not in _with('v', make)


def _parallel_concat(device=''):
  """As TensorFlow divides ParallelConcat before it places ops."""
  shape = {'shape': {'dim': [{'size': 2}, {'size': 3}]}}
  nodes = [
      graph_defs.node(name, 'Placeholder', (), device, dtype=graph_defs.FLOAT)
      for name in ('a', 'b')
  ]
  nodes.append(
      graph_defs.node('start', '_ParallelConcatStart', (), device, shape=shape,
                      dtype=graph_defs.FLOAT))
  nodes += [
      graph_defs.node(f'update_{name}', '_ParallelConcatUpdate',
                      ['start', name], device, T=graph_defs.FLOAT, loc={'i': i})
      for i, name in enumerate('ab')
  ]
  nodes += [
      graph_defs.node('stack', 'Identity', ['start', '^update_a', '^update_b'],
                      device, T=graph_defs.FLOAT),
      graph_defs.node('reader', 'Exp', ['stack'], device, T=graph_defs.FLOAT)
  ]
  return graph_defs.graph_def(*nodes)


def test_ops_that_write_into_one_tensor_share_a_device():
  """`tf.parallel_stack` once returned memory that nothing had written."""
  for device in ('', graph_defs.CPU(0)):
    graph = graph_def_io.read(graph_defs.source(_parallel_concat(device)),
                              live=bool(device))
    groups = graph_defs.groups(graph)
    assert len({groups[n] for n in ('start', 'update_a', 'update_b', 'stack')
               }) == 1
    assert len({groups[n] for n in ('start', 'a', 'b', 'reader')}) == 4


def test_a_view_of_a_tensor_that_an_op_writes_into():

  def make():
    x = tf1.placeholder(tf.float32, [2, 3], 'x')
    start = tf.exp(x, name='start')
    view = tf.identity(start, name='view')
    update = tf1.raw_ops.InplaceAdd(x=view, i=[0], v=[[1., 2., 3.]],
                                    name='update')
    with tf1.control_dependencies([update]):
      tf.sin(start, name='late')
    tf.cos(update, name='result')

  found = _with('start', make)
  assert {'view', 'update', 'late'} <= found
  assert not found & {'x', 'result'}


def _peak_bytes(num_variables):
  """Memory for joining the readers of averages, made after all updates."""

  def make():
    variables = [
        tf1.Variable([1.], use_resource=False, name=f'v{i}')
        for i in range(num_variables)
    ]
    updates = tf.group(*[v.assign_add([1.]) for v in variables])
    with tf1.control_dependencies([updates]):
      for variable in variables:
        tf.sin(variable.op.outputs[0])

  table = node_table.NodeTable('test', graph_defs.built(make))
  num_nodes = len(table.nodes)
  arguments = (union_find.UnionFind(num_nodes), table,
               list(map(node_types.signature,
                        table.nodes)), np.ones((num_nodes, 2), bool))
  tracemalloc.start()
  late_reads.join(*arguments)
  peak_bytes = tracemalloc.get_traced_memory()[1]
  tracemalloc.stop()
  return peak_bytes


def test_memory_does_not_grow_with_the_square_of_the_variables():
  """2,000 variables once took 1.7 GB: a large set for each update stayed."""
  assert _peak_bytes(200) < 7 * _peak_bytes(50)
