import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import view as view_lib


@pytest.fixture(name='view')
def _view():
  with tf.Graph().as_default() as graph:
    x = tf.compat.v1.placeholder(tf.float32, (2, 6), name='x')
    first, _ = tf.split(x, [2, 4], axis=1, name='cut')
    with tf.control_dependencies([tf.no_op('before')]):
      tf.identity(first, 'y')
    tf.identity(tf.constant([7, 8], name='c'), 'd')
  return view_lib.View(source_graph.SourceGraph('g', graph.as_graph_def()))


def test_shapes_and_types_are_known_by_output(view):
  assert view.shape('cut') == (2, 2) and view.shape('cut:1') == (2, 4)
  assert view.dtype('y') == parts.Type(1)
  # It has as many outputs as an attribute says.
  assert view.dtype('cut') is None


def test_constants_are_seen_through_identities(view):
  np.testing.assert_array_equal(view.constant('d'), [7, 8])
  assert view.constant('y') is None


def test_inputs_and_controls_are_told_apart(view):
  node, output = view.producer('y:0')
  assert output == 0
  assert view_lib.inputs(node) == ['cut']
  assert view_lib.controls(node) == ['^before']


def test_nodes_come_behind_their_inputs_and_all_come(view):
  order = [node.name for node in view.in_order()]
  assert sorted(order) == sorted(view.nodes)
  assert order.index('x') < order.index('cut') < order.index('y')


def test_loops_are_walked_through():
  with tf.Graph().as_default() as graph:
    tf.compat.v1.disable_control_flow_v2()
    try:
      tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0])
    finally:
      tf.compat.v1.enable_control_flow_v2()
  view = view_lib.View(source_graph.SourceGraph('g', graph.as_graph_def()))
  assert len(list(view.in_order())) == len(view.nodes)
