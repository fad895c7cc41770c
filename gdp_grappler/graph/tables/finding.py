"""Finds the variables of a graph that are tables, and their slots."""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.tables import handles
from gdp_grappler.graph.tables import rewriting
from gdp_grappler.sharding import choice


@dataclasses.dataclass(frozen=True)
class Table:
  """A variable with two dimensions, and its slots.

  Attributes:
    label: Name of the variable for users.
    nodes: The node of the variable, then those of slots of its shape.
    shape: [rows, columns].
    bytes: Bytes of the variable.
    needs_bytes: Bytes of the variable with its slots and a gradient of all
      rows, if the step has tensors of this size.
  """

  label: str
  nodes: tuple[str, ...]
  shape: tuple[int, ...]
  bytes: int
  needs_bytes: int

  @property
  def axis(self) -> int:
    """Axis along which the table is cut: the longer one.

    For example, the matrix of a last layer is cut along its columns.
    """
    return int(np.argmax(self.shape))

  @property
  def layer(self) -> str:
    """Layer of the table, from a variable's name in Keras; else the name."""
    return layer_of(self.label)


def layer_of(label: str) -> str:
  """Returns 'words' for 'net/words/embeddings', as Keras names variables."""
  return label.split('/')[-2] if '/' in label else label


def tables(source: source_graph.SourceGraph,
           graph: op_graph.OpGraph) -> tuple[Table, ...]:
  """Returns all variables with two dimensions, except slots.

  Args:
    source: The graph from which `graph` was read.
    graph: N ops.
  """
  nodes = {node.name: node for node in source.graph_def.node}
  variables = {
      op: handles.shape_of(nodes[graph.names[op]])
      for op in np.flatnonzero(graph.param_bytes > 0).tolist()
  }
  result: list[Table] = []
  slots: set[int] = set()
  # A slot's name is its variable's name with a prefix or suffix, so it is
  # longer.
  for op in sorted(variables, key=lambda op: (len(_label(graph, op)), op)):
    if op in slots or len(variables[op]) != 2:
      continue
    own = [
        other for other, shape in variables.items()
        if other != op and shape == variables[op] and
        _is_kept_for(_label(graph, other), _label(graph, op))
    ]
    slots.update(own)
    size = int(graph.param_bytes[op])
    result.append(
        Table(_label(graph, op), tuple(graph.names[i] for i in (op, *own)),
              variables[op], size,
              size * (1 + len(own) + _is_computed(graph, size))))
  return tuple(result)


def _label(graph: op_graph.OpGraph, op: int) -> str:
  return graph.variables[op] or graph.names[op]


def _is_kept_for(slot: str, variable: str) -> bool:
  """Whether a variable is a slot of another one, by its name."""
  names = '|'.join(map(re.escape, (variable, variable.replace('/', '_'))))
  # "keywords/table" is not a slot of "words/table".
  return bool(re.search(rf'(?:^|/)(?:{names})(?![^\W_])', slot))


def _is_computed(graph: op_graph.OpGraph, size_bytes: int) -> bool:
  """Whether a step has tensors as large as a table, such as its gradient."""
  large = graph.tensor_ops[graph.tensor_bytes >= size_bytes]
  return any(graph.op_types[op] not in op_kinds.VARIABLE_VALUES
             for op in large.tolist())


def in_parts(source: source_graph.SourceGraph, found: Sequence[Table],
             count: Callable[[Table], int]) -> source_graph.SourceGraph:
  """Returns a graph with split tables.

  Args:
    source: The graph.
    found: Tables of the graph.
    count: Function that returns the number of a table's parts.

  Raises:
    InvalidGraphError: a table is used by an op that needs the whole table.
  """
  for table in found:
    sizes = choice.sizes(table.shape[table.axis], count(table))
    source = rewriting.in_parts(source, dict.fromkeys(table.nodes, sizes),
                                table.axis)
  names = tuple((table.label, count(table)) for table in found)
  return dataclasses.replace(source, tables=names)


def matches(pattern: str, table: Table) -> bool:
  """Whether a user's name or pattern fits a table's layer or full name."""
  return any(
      fnmatch.fnmatchcase(name, pattern) for name in (table.layer, table.label))
