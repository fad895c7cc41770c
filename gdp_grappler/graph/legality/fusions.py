"""Pairs of ops that TensorFlow fuses after placement.

If oneDNN is on, a pass over the CPU part of a graph fuses pairs of ops
(tensorflow/core/common_runtime/mkl_layout_pass.cc: `minfo_` and `wsinfo_`). The
fused kernel rounds differently from the two ops. So a pair on two devices would
give other numbers than the same pair on one device. Grappler makes all other
fusions, and makes them before placement.
"""

from __future__ import annotations

from typing import Iterator, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_table
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import colocation

# An op, and an op that reads its first output.
_CHAINS = frozenset((
    ('Conv2D', 'BiasAdd'),
    ('Pad', 'Conv2D'),
    ('Pad', '_FusedConv2D'),
    ('MaxPool', 'MaxPoolGrad'),
    ('MaxPool3D', 'MaxPool3DGrad'),
    ('LRN', 'LRNGrad'),
))
_FIRSTS = frozenset(first for first, _ in _CHAINS)
# Ops that read the same gradient, and its position among their data inputs.
_SIBLINGS = {'Conv2DBackpropFilter': 2, 'BiasAddGrad': 0}


def join(sets: union_find.UnionFind, table: node_table.NodeTable,
         own_will: Sequence[bool]) -> None:
  """Joins pairs that would be fused and now share a device.

  Args:
    sets: Sets of ops that share a device; changed in place.
    table: N nodes, placed.
    own_will: [N], whether a user chose the device of an op. Such ops are not
      joined.
  """
  nodes = table.nodes
  for first, second in _pairs(table):
    if (nodes[first].device == nodes[second].device and not own_will[first] and
        not own_will[second]):
      sets.join(first, second)


def _pairs(table: node_table.NodeTable) -> Iterator[tuple[int, int]]:
  nodes = table.nodes
  array = np.asarray(table.edges, np.int64).reshape(-1, 3)
  first = table.flags(lambda node: node.op in _FIRSTS)
  sibling = table.flags(lambda node: node.op in _SIBLINGS)
  places = colocation.input_places(array)
  wanted = ((array[:, 1] == 0) & first[array[:, 0]] |
            (array[:, 1] >= 0) & sibling[array[:, 2]])
  readers: dict[tuple[int, int], list[int]] = {}
  for (source, output, target), place in zip(array[wanted].tolist(),
                                             places[wanted].tolist()):
    op = nodes[target].op
    if output == 0 and (nodes[source].op, op) in _CHAINS:
      yield source, target
    if _SIBLINGS.get(op) == place:
      readers.setdefault((source, output), []).append(target)
  yield from _siblings(nodes, readers)


def _siblings(
    nodes: Sequence[node_def_pb2.NodeDef],
    readers: Mapping[tuple[int, int], list[int]]) -> Iterator[tuple[int, int]]:
  for ops in readers.values():
    if len({nodes[op].op for op in ops}) > 1:
      for op in ops[1:]:
        yield ops[0], op
