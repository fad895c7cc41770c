"""Sums of three tensors or more, whose order hangs on where they are read.

AddN writes into the first input that it may have, and begins to add with it
(tensorflow/core/kernels/aggregate_ops.cc). What goes to another host needs
memory for that (core/common_runtime/immutable_executor_state.cc:
`InferAllocAttr`), and of its inputs only those have it that came from another
host. So (a + b) + c is (c + b) + a where c comes from one host and the sum goes
to one. Between devices of one host it is not so.
"""

from __future__ import annotations

from typing import Iterator, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_table
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import colocation

# The first ones may change places.
_FREE_INPUTS = 2


def join(sets: union_find.UnionFind, table: node_table.NodeTable,
         own_will: Sequence[bool], devices: Sequence[str]) -> None:
  """Joins sums with those that read them, so that they are sent nowhere.

  A sum that is read on other devices already has its later inputs beside it.

  Args:
    sets: Changed in place.
    table: N nodes, placed.
    own_will: [N], ops that somebody wants on a certain device; they join none.
    devices: Of the program; nothing is joined where all are of one host.
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
  """Each sum, its inputs but for the first ones, and its readers."""
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
