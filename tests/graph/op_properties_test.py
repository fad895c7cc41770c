import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_properties
from helpers import graph_defs


def _estimated(definition, unknown_dim):
  return op_properties.estimate(node_table.NodeTable('test', definition),
                                unknown_dim)


def _estimate(make, unknown_dim=32):
  definition = graph_defs.built(make)
  result = _estimated(definition, unknown_dim)
  return {node.name: i for i, node in enumerate(definition.node)}, result


def test_matmul():

  def make():
    a = tf.compat.v1.placeholder(tf.float32, [None, 10], 'a')
    tf.matmul(a, tf.zeros([10, 5]), name='product')

  index, result = _estimate(make, unknown_dim=7)
  product = index['product']
  assert result.flops[product] == 2 * 7 * 10 * 5
  assert result.io_bytes[product] == 4 * (7 * 10 + 10 * 5 + 7 * 5)
  assert result.output_bytes[result.output_starts[product]] == 4 * 7 * 5
  assert result.output_bytes[result.output_starts[index['a']]] == 4 * 7 * 10


def test_several_outputs_and_none():

  def make():
    a, _ = tf.unstack(tf.zeros([2, 3]), name='two')
    tf.group(a, name='none')

  index, result = _estimate(make)
  counts = np.diff(result.output_starts)
  assert counts[index['two']] == 2 and counts[index['none']] == 0
  assert len(result.output_bytes) == result.output_starts[-1]


def test_handles_weigh_nothing():
  index, result = _estimate(lambda: tf.compat.v1.Variable(
      tf.zeros([9, 9]), use_resource=True, name='v'))
  assert result.output_bytes[result.output_starts[index['v']]] == 0
  read = index['v/Read/ReadVariableOp']
  assert result.output_bytes[result.output_starts[read]] == 4 * 81


def test_arguments_of_a_function_have_their_shape():
  shape = tf.TensorShape([None, 3]).as_proto()
  argument = graph_defs.node('x', '_Arg', T=graph_defs.FLOAT)
  argument.attr['_output_shapes'].list.shape.append(shape)
  handle = graph_defs.node('v', '_Arg', T={'type': 20})
  handle.attr['_handle_dtypes'].list.type.append(1)
  handle.attr['_handle_shapes'].list.shape.append(
      tf.TensorShape([3, 2]).as_proto())
  definition = graph_defs.graph_def(
      argument, handle,
      graph_defs.node('read', 'ReadVariableOp', ['v'], dtype=graph_defs.FLOAT),
      graph_defs.node('y', 'MatMul', ['x', 'read'], T=graph_defs.FLOAT,
                      transpose_a={'b': False}, transpose_b={'b': False}),
      graph_defs.node('r', '_Retval', ['y'], T=graph_defs.FLOAT))
  before = definition.SerializeToString(deterministic=True)
  result = _estimated(definition, 5)
  assert result.output_bytes[result.output_starts[3]] == 4 * 5 * 2
  assert definition.SerializeToString(deterministic=True) == before


def test_a_handle_that_tells_half_is_read():
  """Regression: a shape without a type was an IndexError."""
  handle = graph_defs.node('v', '_Arg', T={'type': 20})
  handle.attr['_handle_shapes'].list.shape.append(
      tf.TensorShape([3, 2]).as_proto())
  result = _estimated(graph_defs.graph_def(handle), 5)
  assert len(result.output_bytes) == 1


@pytest.mark.parametrize('nodes, message', [
    ([('a', 'NoSuchOp', [])], "Op type not registered 'NoSuchOp'"),
    ([('a', 'NoOp', ['^b']), ('b', 'NoOp', ['^a'])], 'topological order'),
    ([('a', 'NoOp', []),
      ('b', 'MatMul', ['a', 'a'])], '"b" .MatMul. lacks the attribute "T"'),
])
def test_graphs_that_are_none(nodes, message):
  definition = graph_defs.graph_def(*(graph_defs.node(*n) for n in nodes))
  with pytest.raises(errors.InvalidGraphError, match=message):
    _estimated(definition, 32)


def test_empty_graph():
  result = _estimated(graph_defs.graph_def(), 32)
  assert result.output_starts.tolist() == [0] and result.flops.size == 0
