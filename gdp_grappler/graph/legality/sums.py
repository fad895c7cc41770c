"""Sums of three or more tensors, whose order of addition depends on placement.

AddN writes into the first input buffer that it may reuse, and begins to add
with this input (tensorflow/core/kernels/aggregate_ops.cc). If the sum goes to
another host, its buffer must be in memory that network cards can access
(core/common_runtime/immutable_executor_state.cc: `InferAllocAttr`). Among the
inputs, only those that came from another host are in such memory. So (a + b) +
c becomes (c + b) + a if c comes from another host and the sum goes to another
host. Between devices of one host the order stays.
"""

from __future__ import annotations

from typing import Iterator, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_table
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import colocation

# The first two inputs may change places, because a + b is b + a.
_FREE_INPUTS = 2


def join(sets: union_find.UnionFind, table: node_table.NodeTable,
         own_will: Sequence[bool], devices: Sequence[str]) -> None:
  """Joins sums with their readers, so that they are not sent to other hosts.

  If a sum has readers on other devices, it is also joined with its third and
  later inputs, so that none of them comes from another host.

  Args:
    sets: Sets of ops that share a device; changed in place.
    table: N nodes, placed.
    own_will: [N], whether a user chose the device of an op. Such ops are not
      joined.
    devices: Devices of the program. If all are of one host, nothing is joined.
  """
  if len({device.rpartition('/device:')[0] for device in devices}) < 2:
    return
  nodes = table.nodes

  def may_join(first: int, second: int) -> bool:
    return (nodes[first].device == nodes[second].device and
            not own_will[first] and not own_will[second])

  for op, inputs, readers in _sums(table):
    stays = all(may_join(op, reader) for reader in readers)
    for other in (*readers, *(() if stays else inputs)):
      if may_join(op, other):
        sets.join(op, other)


def _sums(
    table: node_table.NodeTable) -> Iterator[tuple[int, list[int], list[int]]]:
  """Yields each sum, its inputs after the first two, and its readers."""
  edges = np.asarray(table.edges, np.int64).reshape(-1, 3)
  is_sum, is_data = table.flags(_has_an_order), edges[:, 1] >= 0
  later = colocation.input_places(edges) >= _FREE_INPUTS
  inputs: dict[int,
               list[int]] = {op: [] for op in np.flatnonzero(is_sum).tolist()}
  readers: dict[int, list[int]] = {op: [] for op in inputs}
  for source, _, target in edges[is_data & is_sum[edges[:, 0]]].tolist():
    readers[source].append(target)
  for source, _, target in edges[is_data & later
                                 & is_sum[edges[:, 2]]].tolist():
    inputs[target].append(source)
  for op in inputs:
    yield op, inputs[op], readers[op]


def _has_an_order(node: node_def_pb2.NodeDef) -> bool:
  return node.op == 'AddN' and node.attr['N'].i > _FREE_INPUTS
