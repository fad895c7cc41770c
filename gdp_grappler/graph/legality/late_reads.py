"""Ops that read a buffer after another op of the step has changed it.

TensorFlow passes the value of a reference variable on without a copy: the
output of Identity, for example, has the buffer of the variable. So an op that
runs after an update of the variable reads the new value, even if its input was
made before the update. On another device the op would read a copy, which may
have been made before the update. The same holds for ops that write into a
tensor, such as the ops that TensorFlow makes from a ParallelConcat.

So such a reader shares a device with the buffer, and with the ops that pass the
buffer on to it. Readers that run before the update stay free, because their
copy is made before they run. So do readers that the program does not order,
because their value is undefined on one device, too.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence

import numpy as np

from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import colocation
from gdp_grappler.graph.legality import node_types

# Ops that write into their first input, which is no reference.
_WRITES = frozenset(
    ('InplaceAdd', 'InplaceSub', 'InplaceUpdate', '_ParallelConcatUpdate'))
# Ops that output the buffer of their first input, or a part of it. For some,
# such as Cast, shapes and types decide.
_PASSES_ON = op_kinds.HANDED_ON | op_kinds.VIEWS | op_kinds.IN_PLACE | {
    '_ParallelConcatUpdate', 'Cast', 'Slice', 'Split', 'SplitV', 'StridedSlice',
    'Transpose', 'Unpack'
}
# Ops that output the buffer of any input.
_PASSES_ANY_ON = op_kinds.MERGES | {'IdentityN'}


def join(sets: union_find.UnionFind, table: node_table.NodeTable,
         signatures: Sequence[node_types.Signature],
         allowed_types: np.ndarray) -> None:
  """Joins readers that run after an update with the buffer that they read.

  Ops that are already on several devices are not joined, because there
  TensorFlow copies as well. Ops without a device are not joined if the reader
  lacks a kernel that the producer has, because TensorFlow then may put them on
  several devices.

  Args:
    sets: Sets of ops that share a device; changed in place.
    table: N nodes.
    signatures: [N], types of their inputs and outputs.
    allowed_types: bool [N, types], whether there is a kernel.
  """
  if table.types & (op_kinds.REFERENCE_VARIABLES | _WRITES):
    _Joiner(sets, table, signatures, allowed_types).join()


class _Joiner:
  """Joins late readers among N nodes."""

  def __init__(self, sets: union_find.UnionFind, table: node_table.NodeTable,
               signatures: Sequence[node_types.Signature],
               allowed_types: np.ndarray) -> None:
    self._sets, self._nodes = sets, table.nodes
    self._signatures, self._allowed = signatures, allowed_types
    self._edges = np.asarray(table.edges, np.int64).reshape(-1, 3)
    self._consumers: list[list[int]] = [[] for _ in table.nodes]
    for source, _, target in self._edges.tolist():
      self._consumers[source].append(target)

  def join(self) -> None:
    """Joins readers with the ops that pass a changed buffer on to them."""
    reads = list(self._reads())
    buffers = union_find.UnionFind(len(self._nodes))
    givers: dict[int, list[int]] = {}
    for source, target, place in reads:
      if self._passes_on(target, place):
        buffers.join(source, target)
        givers.setdefault(target, []).append(source)
    changes: dict[int, list[int]] = {}
    for source, target, place in reads:
      if self._changes(target, place):
        changes.setdefault(buffers.find(source), []).append(target)
    # Most readers run before all updates, so the ops after a single update
    # matter for few buffers.
    late = self._after(op for ops in changes.values() for op in ops)
    readers: dict[int, list[tuple[int, int]]] = {}
    for source, target, _ in reads:
      buffer = buffers.find(source)
      if target in late and buffer in changes:
        readers.setdefault(buffer, []).append((source, target))
    for buffer, pairs in readers.items():
      for change in changes[buffer]:
        # A set may have most ops of the graph, so only one is in memory.
        after = self._after((change,))
        for source, target in pairs:
          if target in after and source not in after:
            for op in _upward(source, givers):
              self._sets.join(op, target)

  def _reads(self) -> Iterator[tuple[int, int, int]]:
    """Yields producer, consumer and input position of reads on one device."""
    places = colocation.input_places(self._edges)
    data = self._edges[:, 1] >= 0
    for (source, _, target), place in zip(self._edges[data].tolist(),
                                          places[data].tolist()):
      device = self._nodes[source].device
      if device == self._nodes[target].device and (
          device or (self._allowed[target] >= self._allowed[source]).all()):
        yield source, target, place

  def _passes_on(self, op: int, place: int) -> bool:
    """Whether an op may output the buffer of an input."""
    op_type = self._nodes[op].op
    return (op_type in _PASSES_ANY_ON or place == 0 and op_type in _PASSES_ON)

  def _changes(self, op: int, place: int) -> bool:
    """Whether an op writes into the buffer of an input."""
    op_type, inputs = self._nodes[op].op, self._signatures[op].inputs
    if op_type in _WRITES:
      return place == 0
    return (place < len(inputs) and inputs[place].is_ref and
            op_type not in op_kinds.HANDED_ON | op_kinds.MERGES)

  def _after(self, starts: Iterable[int]) -> set[int]:
    """Returns the given ops and all ops that depend on them."""
    pending = list(starts)
    seen = set(pending)
    while pending:
      for target in self._consumers[pending.pop()]:
        if target not in seen:
          seen.add(target)
          pending.append(target)
    return seen


def _upward(op: int, givers: dict[int, list[int]]) -> set[int]:
  """Returns an op and the ops from which it got its buffer."""
  pending, seen = [op], {op}
  while pending:
    for giver in givers.get(pending.pop(), ()):
      if giver not in seen:
        seen.add(giver)
        pending.append(giver)
  return seen
