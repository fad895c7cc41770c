"""Names of variables that the ops which stand for them do not tell.

A function receives the handles of its variables as arguments, and TensorFlow
calls those 'unknown_5'. Whoever traces a graph knows the variables and writes
their names into an attribute of these nodes, which stays with the graph
wherever it is written.
"""

from __future__ import annotations

import re
from typing import Mapping, Sequence

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds

# TensorFlow ignores attributes that begin so.
_ATTRIBUTE = '_gdp_variable'
# The ends of readers' names that say nothing of their layer.
_NO_LAYER = re.compile(r'ReadVariableOp.*|Cast|enter|_\d+')


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


def guessed(nodes: Sequence[node_def_pb2.NodeDef], edges: np.ndarray,
            groups: np.ndarray) -> dict[int, str]:
  """What to call variables whose names nobody has written down.

  A file may have them as 'unknown_5' alone. Such a variable is called after
  what reads it: 'net/dense/MatMul_variable'. In a group, slots are those that
  are read nowhere but where all of the group are, in the optimizer; they are
  called after their variable: 'net/dense/MatMul_variable/slot_1'.

  Args:
    nodes: [N].
    edges: int [E, 3], producer, output, consumer.
    groups: int [N], what shares a device.

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
  """What to call a variable that ops of these names read; '' if none does.

  It is in the scope of the layer: an op that reads it is no scope of its own.
  Whether the last part of a name is an op's shows in TensorFlow's registry, as
  Grappler may have fused the op with another one.

  Args:
    readers: The likeliest first.
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
