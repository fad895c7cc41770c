"""Tensors that an op on a GPU makes or reads in the memory of the host.

Conditions, shapes and seeds are such tensors: the kernel of a GPU needs them
before it is launched. The registry says it of each argument of a kernel
(`host_memory_arg`). TensorFlow also keeps all strings and handles of resources
there (`DataTypeAlwaysOnHost` in tensorflow/core/framework/types.h).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler.graph import node_table
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.legality import node_types

_ALWAYS = (types_pb2.DT_STRING, types_pb2.DT_RESOURCE)
# Calls of functions, which have all int32 there (`IsFunctionCallOp` in
# tensorflow/core/common_runtime/memory_types.cc).
_CALLS = ('PartitionedCall', 'StatefulPartitionedCall', 'While',
          'StatelessWhile', 'SymbolicGradient')


class HostMemory(NamedTuple):
  """Whether a node on a GPU has its inputs and outputs in the host's memory."""

  inputs: tuple[bool, ...]
  outputs: tuple[bool, ...]


def of(node: node_def_pb2.NodeDef) -> HostMemory:
  """Where a node has its tensors; nowhere on the host if no GPU can run it."""
  definition, named = kernels.op_def(node.op), kernels.host_arguments(node)
  if definition is None or named is None:
    return HostMemory((), ())
  signature = node_types.signature(node)
  return HostMemory(
      _flags(node, definition.input_arg, named, signature.inputs),
      _flags(node, definition.output_arg, named, signature.outputs))


def made(table: node_table.NodeTable, starts: np.ndarray) -> np.ndarray:
  """bool [T], tensors that ops on GPUs make in the memory of the host.

  Args:
    table: N nodes.
    starts: [N + 1], where each op's tensors begin, of T tensors.
  """
  result = np.zeros(starts[-1], bool)
  for op, memory in enumerate(table.each(of)):
    if any(memory.outputs):
      own = result[starts[op]:starts[op + 1]]
      flags = memory.outputs[:len(own)]
      own[:len(flags)] = flags
  return result


def read(table: node_table.NodeTable) -> np.ndarray:
  """bool [E], edges of a table whose consumer reads on the host."""
  edges = np.asarray(table.edges)
  result = np.zeros(len(edges), bool)
  data = np.flatnonzero(edges[:, 1] >= 0)
  consumers = edges[data, 2]
  # Edges have the order of the nodes and of their inputs.
  firsts = np.searchsorted(consumers, np.arange(len(table.nodes) + 1))
  for op, memory in enumerate(table.each(of)):
    if any(memory.inputs):
      own = data[firsts[op]:firsts[op + 1]]
      flags = memory.inputs[:len(own)]
      result[own[:len(flags)]] = flags
  return result


def _flags(node: node_def_pb2.NodeDef, args: Sequence[Any],
           named: frozenset[str],
           types: Sequence[node_types.ArgType]) -> tuple[bool, ...]:
  by_name: list[bool] = []
  for arg in args:
    count = 1
    if arg.type_list_attr:
      count = len(node.attr[arg.type_list_attr].list.type)
    elif arg.number_attr:
      count = node.attr[arg.number_attr].i
    by_name += [arg.name in named] * count
  always = (*_ALWAYS, types_pb2.DT_INT32) if node.op in _CALLS else _ALWAYS
  return tuple(
      host or kind.dtype in always for host, kind in zip(by_name, types))
