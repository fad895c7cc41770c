"""Finds the variables of a graph that are tables, and their slots."""

from __future__ import annotations

import dataclasses
import fnmatch
from typing import Callable, Mapping, Sequence

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.legality import slots
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
  labels = {
      op: graph.variables[op] or graph.names[op]
      for op, shape in variables.items() if len(shape) == 2
  }
  kept_for = slots_of(labels, variables)
  result: list[Table] = []
  for op in sorted(labels, key=lambda op: (len(labels[op]), op)):
    if op in kept_for:
      continue
    own = [slot for slot in labels if kept_for.get(slot) == op]
    size = int(graph.param_bytes[op])
    result.append(
        Table(labels[op], tuple(graph.names[i] for i in (op, *own)),
              variables[op], size,
              size * (1 + len(own) + _is_computed(graph, size))))
  return tuple(result)


def slots_of(labels: Mapping[int, str],
             shapes: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
  """Returns the variables of slots, by the slots' names and shapes.

  Args:
    labels: Names of variables, slots included, by op.
    shapes: Shapes of variables by op.
  """
  by_key: dict[tuple[str, tuple[int, ...]], int] = {}
  for op, label in labels.items():
    by_key.setdefault((slots.key(label), shapes[op]), op)
  # A key is longer than the keys of variables that it may be named after. So a
  # variable comes before its slots.
  result: dict[int, int] = {}
  for op in sorted(labels, key=lambda op: len(labels[op])):
    parts = labels[op].split('/')
    # Variable scopes may be in front: "net/net/words/table/Adam".
    named = (by_key.get((key, shapes[op])) for start in range(len(parts))
             for key in slots.variables_of('/'.join(parts[start:])))
    variable = next((found for found in named if found is not None), None)
    if variable is not None:
      result[op] = result.get(variable, variable)
  return result


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
