"""Finds ops that only update variables: an optimizer's arithmetic and slots."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import layer_map
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.structure import scopes
from gdp_grappler.graph.structure import variable_uses

# Bytes of a number of the largest type, complex128.
SCALAR_BYTES = 16
# Scope in which a legacy optimizer computes gradients.
_GRADIENTS = 'gradients'
# Stands for the bytes of the changed variable if an op changes no variable.
_NOTHING = -2
# Stands for the bytes of the changed variable if an op changes all variables.
_ALL = -1


def of_one_variable(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops whose results only change one variable and its slots.

  A variable and its slots have the same size, so the function compares sizes.
  An op on a path to the loss changes all variables.

  Args:
    graph: N ops.
  """
  held = variable_uses.only_held_bytes(graph)
  sizes = np.zeros(graph.num_groups, np.int64)
  np.maximum.at(sizes, graph.groups, held)
  # A loop and the variables that it reads are one group. Most ops of the loop
  # compute its result. Only the assignments change the variable.
  in_loops = _loops(graph) & (sizes > 0)
  sizes[in_loops] = _ALL
  changed = sizes[graph.groups]
  assigns = graph.where_type(variable_uses.changes) & in_loops[graph.groups]
  edges = graph.edges[assigns[graph.edges[:, 1]]]
  edges = edges[held[edges[:, 0]] > 0]
  changed[edges[:, 1]] = held[edges[:, 0]]
  update = np.zeros(graph.num_ops, bool)
  successors, starts = graph.successors
  for op in graph.topological_order[::-1].tolist():
    readers = successors[starts[op]:starts[op + 1]]
    if changed[op]:
      continue
    read_by = set(changed[readers].tolist()) - {_NOTHING}
    if readers and not read_by or graph.op_types[op] == 'NoOp' and not readers:
      # No result depends on such an op. Conditions have such ops.
      changed[op] = _NOTHING
    elif readers:
      update[op] = len(read_by) == 1 and min(read_by) > 0
      changed[op] = min(read_by) if update[op] else _ALL
  return update


def in_optimizers(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops in the scope of an optimizer, and slots.

  In the scope of an optimizer, all ops only update variables, one or several,
  except ops with a scalar result, such as the learning rate. A scope is an
  optimizer only if some op in it waits for a gradient. So a loss that only
  updates a metric is no optimizer.

  Args:
    graph: N ops.
  """
  serves = serving(graph)
  names = [layer_map.outermost(name) for name in graph.names]
  updating = _after_gradients(graph, names)
  # Layers and updates may share a constant, such as a transpose's permutation.
  serves_or_constant = (np.array(_of_updates(graph, serves, names), bool)
                        | graph.where_type('Const'.__eq__))
  of_layers = {
      name for name, own, size in zip(names, serves_or_constant.tolist(),
                                      graph.output_bytes.tolist())
      if size > SCALAR_BYTES and not (own and name in updating)
  }
  return np.array([
      own and (bool(variable) or name not in of_layers) or
      bool(name) and name not in of_layers
      for own, variable, name in zip(serves.tolist(), graph.variables, names)
  ], bool)


def _after_gradients(graph: op_graph.OpGraph, names: Sequence[str]) -> set[str]:
  """Scopes with an op that waits for a gradient and computes no gradient.

  If the graph has no gradients, the result has all scopes. If it has some, the
  result also has the scope '' of ops without a scope, even if no such op waits.

  Args:
    graph: N ops.
    names: [N], outermost scopes.
  """
  backward = scopes.read(graph).backward
  if not backward.any():
    return set(names)
  after = backward.copy()
  successors, starts = graph.successors
  for op in graph.topological_order.tolist():
    if after[op]:
      after[successors[starts[op]:starts[op + 1]]] = True
  own = (after & ~backward).tolist()
  return {name for name, waits in zip(names, own) if waits} | {''}


def _of_updates(graph: op_graph.OpGraph, serves: np.ndarray,
                names: Sequence[str]) -> list[bool]:
  """Marks ops that update one variable, or several variables of one scope.

  Two embeddings whose results are added have one gradient. Grappler then merges
  equal ops in the updates of both, such as the square of this gradient.

  Args:
    graph: N ops.
    serves: bool [N] of `serving`.
    names: [N], outermost scopes.
  """
  result = serves.tolist()
  backward = scopes.read(graph).backward
  successors, starts = graph.successors
  for op in graph.topological_order[::-1].tolist():
    readers = successors[starts[op]:starts[op + 1]]
    if readers and not result[op] and not backward[op]:
      result[op] = all(result[r] and names[r] == names[op] for r in readers)
  return result


def serving(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops that only serve to update one variable, slots included.

  Args:
    graph: N ops.
  """
  result = of_one_variable(graph) | sums(graph)
  held = variable_uses.only_held_bytes(graph)
  holds = graph.group_sums(held) > 0
  carries = graph.edge_tensors >= 0
  sources, targets = graph.edges[carries].T
  order = np.argsort(sources, kind='stable')
  targets = targets[order]
  starts = np.searchsorted(sources[order], np.arange(graph.num_ops + 1))
  # The edges do not show that an iteration of a loop reads the results of the
  # iteration before. So of a loop's group, only variables, slots, and ops that
  # read or change them count.
  outside = (held > 0) | graph.where_type(_reads_or_changes)
  of_variables = holds[graph.groups] & (~_loops(graph)[graph.groups] | outside)
  for op in graph.topological_order[::-1].tolist():
    if of_variables[op]:
      result[op] = result[targets[starts[op]:starts[op + 1]]].all()
  return result


def _reads_or_changes(op_type: str) -> bool:
  return op_type == 'ReadVariableOp' or variable_uses.changes(op_type)


def _loops(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [G], groups of while loops."""
  result = np.zeros(graph.num_groups, bool)
  result[[
      group for group, kind in zip(graph.groups.tolist(), graph.op_types)
      if kind in op_kinds.ENTERS
  ]] = True
  return result


def carriers(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], ops that carry values into, through and out of a while loop.

  TensorFlow names them after the values. So the gradient of one layer's loop
  has ops with the name of another layer. All ops of a loop share a device,
  which other ops of the loop decide.

  Args:
    graph: N ops.
  """
  carries = graph.where_type(op_kinds.CONTROL_FLOW.__contains__)
  return carries & _loops(graph)[graph.groups]


def sums(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], sums of gradients.

  `GradientTape` puts them into no scope. `minimize` of a legacy optimizer of
  tf_keras puts them into 'Adam/gradients'.

  Args:
    graph: N ops.
  """
  return np.array([
      kind == 'AddN' and (layer_map.bare_name(name) == kind or
                          name.split('/')[-2:-1] == [_GRADIENTS])
      for kind, name in zip(graph.op_types, graph.names)
  ], bool)
