"""The original graph, with shapes and types of its tensors."""

from __future__ import annotations

from typing import Iterator

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import op_def_registry
from tensorflow.python.framework import tensor_util

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import op_properties
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import parts

# Size of unknown dimensions. It is assumed that no table has exactly this
# number of rows.
_UNKNOWN = 7_919


class View:
  """Nodes of a graph, and shapes, types and values of their outputs."""

  def __init__(self, source: source_graph.SourceGraph) -> None:
    """Infers the shapes of all tensors.

    Raises:
      InvalidGraphError: shape inference rejects the graph.
    """
    table = node_table.NodeTable(source.name, source.graph_def)
    self._properties = op_properties.estimate(table, _UNKNOWN)
    self.nodes = {node.name: node for node in source.graph_def.node}
    self._rows = {name: row for row, name in enumerate(self.nodes)}

  def producer(self, tensor: str) -> tuple[node_def_pb2.NodeDef, int]:
    """Returns the node that outputs a tensor, and the number of the output."""
    name, _, output = tensor.partition(':')
    return self.nodes[name], int(output or 0)

  def shape(self, tensor: str) -> tuple[int, ...] | None:
    """Returns the dimensions of a tensor; None if their number is unknown."""
    node, output = self.producer(tensor)
    return self._properties.shape(self._rows[node.name], output)

  def dtype(self, tensor: str) -> parts.Type | None:
    """Returns the type of a tensor's elements; None if its op does not tell."""
    node, output = self.producer(tensor)
    definition = op_def_registry.get(node.op)
    if definition is None or output >= len(definition.output_arg):
      return None
    argument = definition.output_arg[output]
    if argument.number_attr or argument.type_list_attr:
      return None
    number = argument.type or node_attributes.of(node, argument.type_attr).type
    return parts.Type(number)

  def constant(self, tensor: str) -> np.ndarray | None:
    """Returns the value of a constant; None for other tensors."""
    node, _ = self.producer(tensor)
    while node.op == 'Identity':
      node, _ = self.producer(inputs(node)[0])
    if node.op != 'Const':
      return None
    return np.asarray(tensor_util.MakeNdarray(node.attr['value'].tensor))

  def in_order(self) -> Iterator[node_def_pb2.NodeDef]:
    """Yields nodes after their producers, without loop-carried edges."""
    rows = [(self._rows[self.producer(tensor)[0].name], row)
            for row, node in enumerate(self.nodes.values())
            for tensor in inputs(node)
            if self.producer(tensor)[0].op not in op_kinds.NEXT_ITERATIONS]
    nodes = list(self.nodes.values())
    for row in native_graph.order(len(nodes), rows).tolist():
      yield nodes[row]


def inputs(node: node_def_pb2.NodeDef) -> list[str]:
  """Returns a node's data inputs, without ':0' for a first output."""
  return [
      item.removesuffix(':0') for item in node.input if not item.startswith('^')
  ]


def controls(node: node_def_pb2.NodeDef) -> list[str]:
  """Returns a node's control inputs, as '^name'."""
  return [item for item in node.input if item.startswith('^')]
