import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import node_table
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.control_flow import frames as frames_lib
from gdp_grappler.graph.control_flow import tensor_lists
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


def test_stacks_of_a_loop_hold_every_iteration():
  """What a loop of TensorFlow 1 pushes for its gradient had no memory."""
  built = graph_defs.built(real_graphs.V1_GRAPHS['frames_with_gradient'])
  graph = graph_def_io.read(graph_defs.source(built), unknown_dim=2)
  held = [
      graph.output_bytes[i] for i, t in enumerate(graph.op_types)
      if t == 'StackV2'
  ]
  # Three iterations keep an input and an output [2, 3] of their layer.
  assert held == [3 * 2 * 3 * 4] * 2


def _sizes_asked(depth, times):
  """Number of sizes of tensors that stacks on stacks ask for."""
  raw = tf.raw_ops

  def make():
    pred = tf.compat.v1.placeholder(tf.bool, [])
    raw.Switch(data=pred, pred=pred)  # Without it stacks have no size.
    stacks = [
        raw.StackV2(max_size=-1, elem_type=tf.resource, stack_name=f's{i}')
        for i in range(depth)
    ]
    for outer, inner in zip(stacks, [*stacks[1:], tf.ones([5])]):
      for _ in range(times):
        raw.StackPushV2(handle=outer, elem=inner)

  table = node_table.NodeTable('stacks', graph_defs.built(make))
  frames = frames_lib.analyse(table.nodes, table.edges,
                              np.zeros(len(table.nodes)), lambda _: None)
  sizes = []
  tensor_lists.list_bytes(table.nodes, table.edges, frames, (),
                          lambda tensor: sizes.append(tensor) or 20)
  return len(sizes)


def test_a_stack_of_stacks_is_summed_once():
  """The time doubled with each stack that two pushes put on another."""
  assert _sizes_asked(depth=10, times=2) == 2


def test_a_long_chain_of_stacks_is_no_error():
  """Python's stack was too small for it, so the graph was not read."""
  assert _sizes_asked(depth=1500, times=1)


def _loops_with_gradient(count):
  """As `while_loop_gradient`, several times in a row with one weight."""
  weight = tf.Variable(tf.ones([3, 3]))

  @tf.function
  def step(x):
    with tf.GradientTape() as tape:
      kernel = tf.identity(weight)
      for _ in range(count):
        for _ in tf.range(4):
          x = tf.tanh(x @ kernel)
      loss = tf.reduce_sum(x**2)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))

  return graph_def_io.read(
      source_graph.SourceGraph(
          'loops', graph_defs.optimized(lambda: step(tf.ones([2, 3])))))


def test_loops_that_begin_with_one_list_fill_lists_of_their_own():
  graph = _loops_with_gradient(2)
  begins = [i for i, t in enumerate(graph.op_types) if t == 'EmptyTensorList']
  taken = [target for source, target in graph.edges if source in begins]
  assert len(set(graph.groups[taken])) == 2
  assert not graph.output_bytes[begins].any()
  # Data never enters by such an edge: it is not sent along.
  assert (graph.edge_tensors[np.isin(graph.edges[:, 0], begins)] == -1).all()
  held = [graph.output_bytes[op] for op in taken]
  assert sum(held) == 2 * 2 * 4 * 2 * 3 * 4
  counted = simulator.aliases(graph)
  assert not counted[taken].any()


def test_rows_of_a_tensor_are_copied_into_a_list():
  """The list of a sequence had 0 bytes and was made by one kernel."""

  def make():
    sequence = tf.compat.v1.placeholder(tf.float32, [7, 4, 5])
    made = tf.raw_ops.TensorListFromTensor(tensor=sequence,
                                           element_shape=[4, 5])
    tf.raw_ops.TensorListGetItem(input_handle=made, index=3,
                                 element_shape=[4, 5], element_dtype=tf.float32)

  read = graph_defs.read(make)
  op = read.op_types.index('TensorListFromTensor')
  size = 7 * 4 * 5 * 4
  assert read.output_bytes[op] == size and read.io_bytes[op] == 2 * size
  assert read.rounds[op] == 7


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
