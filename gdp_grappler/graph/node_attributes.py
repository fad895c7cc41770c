"""Reads attributes of nodes, which are left out if they have their default."""

from __future__ import annotations

from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import node_def_pb2


def of(node: node_def_pb2.NodeDef, name: str) -> attr_value_pb2.AttrValue:
  """Returns an attribute; an empty one if the node does not have it.

  `node.attr[name]` would write the empty attribute into the node, and
  TensorFlow rejects nodes with empty attributes.
  """
  return node.attr.get(name, attr_value_pb2.AttrValue())
