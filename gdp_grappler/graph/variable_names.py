"""Names of variables that the names of their ops do not contain.

A function receives the handles of its variables as arguments, and TensorFlow
calls such arguments 'unknown_5'. Code that traces a graph knows the variables.
It writes their names into an attribute of these nodes, which stays with the
graph in all files.
"""

from __future__ import annotations

import re
from typing import Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds

# TensorFlow ignores attributes that begin with an underscore.
_ATTRIBUTE = '_gdp_variable'
# Last parts of readers' names that say nothing about their layer.
_NO_LAYER = re.compile(r'ReadVariableOp.*|Cast|enter|_\d+')


def mark(node: node_def_pb2.NodeDef, name: str) -> None:
  """Writes the name of a node's variable into the node."""
  node.attr[_ATTRIBUTE].s = name.encode()


def is_marked(node: node_def_pb2.NodeDef) -> bool:
  """Whether the name of a variable was written into a node."""
  return _ATTRIBUTE in node.attr


def of(node: node_def_pb2.NodeDef) -> str:
  """Returns the name of a node's variable; '' for none or the node's name."""
  if not is_marked(node):
    return ''
  name = node.attr[_ATTRIBUTE].s.decode(errors='replace')
  return '' if name == node.name else name


def guessed(nodes: Sequence[node_def_pb2.NodeDef], edges: np.ndarray,
            groups: np.ndarray) -> dict[int, str]:
  """Makes up names for variables whose names are not written in the graph.

  A file may call a variable only 'unknown_5'. Such a variable is named after
  its reader: 'net/dense/MatMul_variable'. A slot is a variable that only the
  optimizer reads. The optimizer's scopes are those that use every variable of a
  group. Slots are named after their variable:
  'net/dense/MatMul_variable/slot_1'.

  Args:
    nodes: [N], NodeDefs.
    edges: int [E, 3], producer, output, consumer.
    groups: int [N], ops of one group share a device.

  Returns:
    Names by op.
  """
  unknown = [
      op for op, node in enumerate(nodes) if node.op in op_kinds.ARGUMENTS and
      not is_marked(node) and '_handle_shapes' in node.attr
  ]
  users: dict[int, set[str]] = {op: set() for op in unknown}
  readers: dict[int, list[str]] = {op: [] for op in unknown}
  for source, _, target in edges[np.isin(edges[:, 0], unknown)].tolist():
    name = name_parts.without_callers(nodes[target].name)
    users[source].add(_scope(name))
    if nodes[target].op not in op_kinds.ASSIGNMENTS:
      readers[source].append(name)
  members: dict[int, list[int]] = {}
  for op in unknown:
    members.setdefault(int(groups[op]), []).append(op)
  result = {}
  for ops in members.values():
    common = set.intersection(*(users[op] for op in ops))
    own = {
        op:
            sorted((name for name in readers[op]
                    if len(ops) == 1 or _scope(name) not in common),
                   key=lambda name: (len(name), name)) for op in ops
    }
    result.update({op: _called(own[op] or readers[op]) for op in ops})
    mains = [op for op in ops if own[op]]
    if len(mains) == 1:
      slots = [op for op in ops if op != mains[0]]
      result.update((op, f'{result[mains[0]]}/slot_{number}')
                    for number, op in enumerate(slots, 1))
  return {op: name for op, name in result.items() if name}


def _called(readers: Sequence[str]) -> str:
  """Returns a name for a variable, made of its readers' names; '' without any.

  The variable is in the scope of the layer, so the name of a reading op must
  not count as a scope. Grappler may have fused the op with another one, so
  TensorFlow's registry has to tell whether the last part of a name is an op's.

  Args:
    readers: Names of the ops that read the variable, the likeliest first.
  """
  if not readers:
    return ''
  path = readers[0].split('/')
  while len(path) > 1 and _NO_LAYER.fullmatch(path[-1]):
    path.pop()
  return '/'.join(path) + ('_variable'
                           if name_parts.names_an_op(path[-1]) else '/variable')


def _scope(name: str) -> str:
  return name.partition('/')[0]
