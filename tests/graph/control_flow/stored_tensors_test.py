"""Shapes of what loops of TensorFlow 1 store, against those that Python knows.

The Python code that makes a gradient writes the shapes of what it pops into the
graph in memory, but a GraphDef does not contain them.
"""

from __future__ import annotations

import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from gdp_grappler.graph.control_flow import lost_shapes
from gdp_grappler.graph.control_flow import stored_tensors
from helpers import graph_defs
from helpers.real_graphs import base

tf1 = tf.compat.v1
raw = tf.raw_ops


def _table(make):
  graph = tf.Graph()
  with graph.as_default():
    base.with_frames(make)
  return graph, node_table.NodeTable('loops', graph.as_graph_def())


def _unknown(make):
  """Ops in loops with the shapes that only Python knows."""
  graph, table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=5)
  result = []
  for op, name in enumerate(table.names):
    for i, output in enumerate(graph.get_operation_by_name(name).outputs):
      found = properties.shape(op, i)
      if '/while/' not in name or output.dtype == tf.resource:
        continue
      if output.shape.rank is not None and (
          found is None or not output.shape.is_compatible_with(found)):
        result.append((name, output.shape, found))
  return result


def _matrix():
  return tf1.get_variable('w', [3, 3], use_resource=False)


def _gradient_of_a_loop():
  x = tf1.placeholder(tf.float32, [None, 3])
  _, y = tf1.while_loop(
      lambda i, _: i < 4, lambda i, h:
      (i + 1, tf1.tanh(tf1.matmul(h, _matrix()))), [0, x])
  return tf1.gradients(y, [x, *tf1.global_variables()])


def _gradient_of_a_nested_loop():
  x = tf1.placeholder(tf.float32, [None, 3])
  w = _matrix()

  def inner(h):
    return tf1.while_loop(lambda j, _: j < 2, lambda j, h:
                          (j + 1, tf1.sin(tf1.matmul(h, w))), [0, h])[1]

  _, y = tf1.while_loop(lambda i, _: i < 4, lambda i, h: (i + 1, inner(h)),
                        [0, x])
  return tf1.gradients(y, [x, w])


def _gradient_of_a_condition_in_a_loop():
  x = tf1.placeholder(tf.float32, [None, 3])
  w = _matrix()
  _, y = tf1.while_loop(
      lambda i, _: i < 4, lambda i, h:
      (i + 1,
       tf1.cond(i < 2, lambda: tf1.tanh(tf1.matmul(h, w)), lambda: tf1.sin(h))),
      [0, x])
  return tf1.gradients(y, [x, w])


def _gradient_of_a_map():
  x = tf1.placeholder(tf.float32, [7, None, 3])
  w = _matrix()
  y = tf1.map_fn(lambda row: tf1.tanh(tf1.matmul(row, w)), x)
  return tf1.gradients(y, [x, w])


def _gradient_of_a_nested_map():
  x = tf1.placeholder(tf.float32, [7, 6, 4, 3])
  y = tf1.map_fn(lambda rows: tf1.map_fn(tf1.sin, rows), x)
  return tf1.gradients(y, x)


def _gradient_of_a_scan():
  x = tf1.placeholder(tf.float32, [7, None, 3])
  w = _matrix()
  y = tf1.scan(lambda h, row: tf1.tanh(tf1.matmul(h + row, w)), x)
  return tf1.gradients(y, [x, w])


@pytest.mark.parametrize('make', [
    _gradient_of_a_loop, _gradient_of_a_nested_loop,
    _gradient_of_a_condition_in_a_loop, _gradient_of_a_map,
    _gradient_of_a_nested_map, _gradient_of_a_scan
])
def test_inference_knows_what_python_knows(make):
  """Products of the backward pass cost the cube of the batch, or nothing."""
  assert not _unknown(make)


def _stack(name):
  return raw.StackV2(max_size=-1, elem_type=tf.float32, stack_name=name)


def _push(stack, shape):
  return raw.StackPushV2(handle=stack, elem=tf1.placeholder(tf.float32, shape))


def _pop(stack):
  return raw.StackPopV2(handle=stack, elem_type=tf.float32, name='pop')


def _pop_of_two_pushes():
  stack = _stack('s')
  _push(stack, [3, 4])
  _push(stack, [4, 3])
  _pop(stack)


def _pop_of_no_push():
  _pop(_stack('s'))


def _pop_of_a_stack_outside():
  _pop(tf1.placeholder(tf.resource, []))


def _pop_of_an_earlier_result():
  stack = _stack('s')
  raw.StackPushV2(handle=stack, elem=tf.sin(_pop(stack)))


def _read_of_a_gradient_of_more_dimensions():
  handle, flow = raw.TensorArrayV3(size=1, dtype=tf.float32,
                                   identical_element_shapes=True)
  flow = raw.TensorArrayWriteV3(handle=handle, index=0, value=tf.zeros([3, 4]),
                                flow_in=flow)
  handle, flow = raw.TensorArrayGradWithShape(handle=handle, flow_in=flow,
                                              shape_to_prepend=[9], source='g')
  raw.TensorArrayReadV3(handle=handle, index=0, flow_in=flow, dtype=tf.float32)


def _read_of_an_array_of_other_shapes():
  handle, flow = raw.TensorArrayV3(size=2, dtype=tf.float32)
  flow = raw.TensorArrayWriteV3(handle=handle, index=0, value=tf.zeros([3, 4]),
                                flow_in=flow)
  raw.TensorArrayReadV3(handle=handle, index=1, flow_in=flow, dtype=tf.float32)


@pytest.mark.parametrize('make', [
    _pop_of_two_pushes, _pop_of_no_push, _pop_of_a_stack_outside,
    _pop_of_an_earlier_result, _read_of_a_gradient_of_more_dimensions,
    _read_of_an_array_of_other_shapes
])
def test_what_the_graph_does_not_tell_stays_unknown(make):
  _, table = _table(make)
  assert not lost_shapes.substitutes(table)


def test_gradient_of_rows_has_the_shape_of_the_rows():
  """Its shape was unknown, and with it all shapes behind it."""

  def make():
    x = tf1.placeholder(tf.float32, [7, None, 3])
    y = tf1.map_fn(lambda row: tf1.tanh(tf1.matmul(row, _matrix())), x)
    tf.identity(tf1.gradients(y, x)[0], name='gradient')

  _, table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=5)
  assert properties.shape(table.names.index('gradient'), 0) == (7, 5, 3)


def test_elements_of_an_array_have_values_of_their_own():
  """Shape inference took the first element for each element."""

  def make():
    handle, flow = raw.TensorArrayV3(size=2, dtype=tf.int32,
                                     identical_element_shapes=True)
    for i, value in enumerate([[2, 5], [300, 400]]):
      flow = raw.TensorArrayWriteV3(handle=handle, index=i, value=value,
                                    flow_in=flow)
    read = raw.TensorArrayReadV3(handle=handle, index=1, flow_in=flow,
                                 dtype=tf.int32, name='read')
    tf.fill(read, 1., name='filled')

  _, table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=7)
  assert properties.shape(table.names.index('read'), 0) == (2,)
  assert properties.shape(table.names.index('filled'), 0) != (2, 5)


def test_one_stack_with_a_cycle_hides_no_other():
  """A step that pushes what it computes of what it pops is no error."""

  def make():
    _pop_of_an_earlier_result()
    stack = _stack('t')
    _push(stack, [3, 4])
    raw.StackPopV2(handle=stack, elem_type=tf.float32, name='other')

  _, table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=5)
  assert properties.shape(table.names.index('pop'), 0) is None
  assert properties.shape(table.names.index('other'), 0) == (3, 4)


def test_products_of_a_gradient_do_not_depend_on_the_batch_size():
  """The size of a batch counted, although no dimension is open."""

  def make():
    x = tf1.placeholder(tf.float32, [16, 7, 32])
    w = tf1.get_variable('w', [32, 32], use_resource=False)
    h = tf1.while_loop(
        lambda i, _: i < 7, lambda i, h:
        (i + 1, tf1.tanh(tf1.matmul(h + x[:, i], w))),
        [0, tf.zeros([16, 32])])[1]
    tf1.gradients(h, [w])

  _, table = _table(make)
  properties = op_properties.estimate(table, unknown_dim=1000)
  products = [i for i, node in enumerate(table.nodes) if node.op == 'MatMul']
  assert properties.flops[products].tolist() == [2 * 16 * 32 * 32] * 3


@pytest.mark.parametrize('order', ['mnaboe', 'abmneo', 'oenmba'])
def test_a_loop_beside_a_cycle_is_not_named(order):
  """The message named the loop's Merge if it came first."""
  loop = {'m': 'Merge', 'n': 'NextIteration', 'e': 'Enter'}
  inputs = {'m': 'en', 'n': 'm', 'e': 'a', 'a': 'b', 'b': 'a', 'o': ''}
  definition = graph_defs.graph_def(
      *(graph_defs.node(name, loop.get(name, 'NoOp'), list(inputs[name]))
        for name in order))
  with pytest.raises(errors.InvalidGraphError, match='the op "[ab]" waits'):
    stored_tensors.check_order(node_table.NodeTable('g', definition))
