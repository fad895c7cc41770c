import pytest
import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph
from helpers import graph_defs
from helpers import real_graphs


def test_lists_of_a_loop_hold_every_iteration():
  graph = graph_def_io.read(
      source_graph.SourceGraph(
          'loop',
          graph_defs.optimized(real_graphs.FUNCTIONS['while_loop_gradient']())))
  held = {
      name: graph.output_bytes[i] for i, name in enumerate(graph.names)
      if graph.op_types[i] in ('EmptyTensorList', 'TensorListReserve')
  }
  # Four iterations keep an input and an output [2, 3] of each layer in two
  # lists, which begin as the same empty one, and references to a variable.
  assert sorted(held.values()) == [0, 2 * 4 * 2 * 3 * 4]


def _list_bytes(make_element):
  """Bytes of a list on which seven iterations push an element [5]."""

  @tf.function
  def run(weight):
    outside = tf.sin(weight)
    elements = tf.raw_ops.EmptyTensorList(element_shape=tf.constant([5]),
                                          max_num_elements=-1,
                                          element_dtype=tf.float32)
    for i in tf.range(7):
      element = make_element(i, weight, outside)
      elements = tf.raw_ops.TensorListPushBack(input_handle=elements,
                                               tensor=element)
    return tf.raw_ops.TensorListStack(input_handle=elements,
                                      element_shape=tf.constant([5]),
                                      element_dtype=tf.float32)

  weight = tf.Variable(tf.ones([5]))
  graph = graph_def_io.read(
      source_graph.SourceGraph('list',
                               graph_defs.optimized(lambda: run(weight))))
  return graph.output_bytes[graph.op_types.index('EmptyTensorList')]


@pytest.mark.parametrize(
    'element, buffers',
    [(lambda i, weight, outside: outside + tf.cast(i, tf.float32), 7),
     (lambda i, weight, outside: outside, 1),
     (lambda i, weight, outside: weight.read_value(), 0)],
    ids=['new', 'from_outside', 'variable'])
def test_lists_hold_references(element, buffers):
  assert _list_bytes(element) == buffers * 5 * 4
