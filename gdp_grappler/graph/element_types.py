"""Types of the elements that ops compute with."""

from __future__ import annotations

from typing import Mapping

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import dtypes

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.control_flow import calls as calls_lib

# Attributes that may have the type of an op's arithmetic, the best one first.
_ATTRIBUTES = ('T', 'Ta', 'dtype')
# Types of the parts of complex numbers.
_PARTS = {'complex128': 'float64'}


def by_name(table: node_table.NodeTable,
            called: Mapping[int, calls_lib.CallCost]) -> dict[str, str]:
  """Returns `OpGraph.element_types_by_name` of a graph.

  Args:
    table: The nodes of the graph.
    called: Costs of the calls among the nodes.
  """
  result: dict[str, str] = {}
  if any(table.of_kinds(_element_type)):
    result.update(zip(table.names, table.each(_element_type)))
  result.update(
      (table.names[op], call.element_type) for op, call in called.items())
  return {name: found for name, found in result.items() if found}


def _element_type(node: node_def_pb2.NodeDef) -> str:
  """Returns one of `op_graph.ELEMENT_TYPES`; '' for any other type."""
  number = next(
      (node.attr[name].type
       for name in _ATTRIBUTES if node_attributes.of(node, name).type), 0)
  name = dtypes.as_dtype(number).name if number else ''
  name = _PARTS.get(name, name)
  return name if name in op_graph.ELEMENT_TYPES else ''
