"""Sources of tensors in small graphs."""

import tensorflow as tf

from gdp_grappler.graph.control_flow import dataflow
from helpers import graph_defs

tf1 = tf.compat.v1
raw = tf.raw_ops


def _flow(make):
  """Dataflow of a graph, and the number of each node by name."""
  nodes = graph_defs.built(make).node
  numbers = {node.name: i for i, node in enumerate(nodes)}
  inputs = [[(numbers[name.partition(':')[0]], int(name.partition(':')[2] or 0))
             for name in node.input if not name.startswith('^')]
            for node in nodes]
  return dataflow.Dataflow(nodes, inputs), numbers


def test_the_source_of_a_tensor_is_whose_buffer_it_is():

  def make():
    drawn = tf1.placeholder(tf.float32, [4], 'drawn')
    tf.identity(raw.Reshape(tensor=raw.StopGradient(input=drawn), shape=[2, 2]),
                'view')
    tf.identity(raw.Snapshot(input=drawn, name='snapshot'), 'copy')

  flow, numbers = _flow(make)
  assert flow.source((numbers['view'], 0)) == (numbers['drawn'], 0)
  assert flow.source((numbers['copy'], 0)) == (numbers['snapshot'], 0)


def test_the_source_of_an_invariant_is_outside_of_the_loop():

  def make():
    tf1.disable_control_flow_v2()
    try:
      x = tf1.placeholder(tf.float32, [4], 'outside')
      tf1.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, x), [0, x])
    finally:
      tf1.enable_control_flow_v2()

  flow, numbers = _flow(make)
  merges = [name for name in numbers if name.startswith('while/Merge')]
  sources = {name: flow.source((numbers[name], 0)) for name in merges}
  assert sources == {
      'while/Merge': (numbers['while/Merge'], 0),
      'while/Merge_1': (numbers['outside'], 0)
  }


def test_the_creator_of_a_list_is_found_behind_its_changes():

  def make():
    made = raw.EmptyTensorList(element_shape=[2], max_num_elements=3,
                               element_dtype=tf.float32, name='made')
    pushed = raw.TensorListPushBack(input_handle=made, tensor=[1., 2.])
    tf.identity(pushed, 'list')
    tf.identity(tf.constant(1.), 'no_list')

  flow, numbers = _flow(make)
  assert flow.creator((numbers['list'], 0)) == (numbers['made'], 0)
  assert flow.creator((numbers['no_list'], 0)) is None
