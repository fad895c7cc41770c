"""Names of variables that the ops which stand for them do not tell.

A function receives the handles of its variables as arguments, and TensorFlow
calls those 'unknown_5'. Whoever traces a graph knows the variables and writes
their names into an attribute of these nodes, which stays with the graph
wherever it is written.
"""

from __future__ import annotations

from typing import Mapping

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import op_kinds

# TensorFlow ignores attributes that begin so.
_ATTRIBUTE = '_gdp_variable'


def mark(node: node_def_pb2.NodeDef, name: str) -> None:
  """Writes down which variable a node stands for."""
  node.attr[_ATTRIBUTE].s = name.encode()


def mark_arguments(graph_def: graph_pb2.GraphDef, names: Mapping[int,
                                                                 str]) -> None:
  """Writes down which variables the arguments of a function stand for.

  Args:
    graph_def: Of the function; changed.
    names: Of variables by the number of the argument.
  """
  for node in graph_def.node:
    if node.op in op_kinds.ARGUMENTS and node.attr['index'].i in names:
      mark(node, names[node.attr['index'].i])


def is_marked(node: node_def_pb2.NodeDef) -> bool:
  """Whether it is written down which variable a node stands for."""
  return _ATTRIBUTE in node.attr


def of(node: node_def_pb2.NodeDef) -> str:
  """The variable that a node stands for; '' if none, or if its name says it."""
  if not is_marked(node):
    return ''
  name = node.attr[_ATTRIBUTE].s.decode(errors='replace')
  return '' if name == node.name else name
