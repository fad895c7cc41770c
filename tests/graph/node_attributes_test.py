"""Attributes that a node has or lacks."""

from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_attributes


def test_an_attribute_that_is_missing_stays_so():
  node = node_def_pb2.NodeDef()
  node.attr['axis'].i = 3
  assert node_attributes.of(node, 'axis').i == 3
  assert not node_attributes.of(node, 'keep_dims').b
  assert list(node.attr) == ['axis']
