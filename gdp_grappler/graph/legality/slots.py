"""Joins variables with the slots that an optimizer keeps for them.

An update may lead from a slot to its variable through any ops. For example,
Adagrad's update of an embedding has conditions. So the criterion is what the
value of a slot changes: the slot's variable, and perhaps other slots of this
variable, but no other variable. In a small model this may also hold for a
weight. So one of these conditions has to hold as well:

* The slot is named after the variable.
* All readers of the slot are in the optimizer's name scope, which changes slot
  and variable, and the variable is also read elsewhere, in its layer.
"""

from __future__ import annotations

import collections
import dataclasses
import re
from typing import Iterable, Iterator, Sequence

import numpy as np

from gdp_grappler.graph import name_parts
from gdp_grappler.graph import node_table
from gdp_grappler.graph import union_find

# A scalar that only an optimizer uses may be a step counter, not a slot.
_SCALAR_BYTES = 8
_PART = re.compile(r'[/_]part_\d+$')


@dataclasses.dataclass
class _Holder:
  """The set of ops that share a device with a variable, and the set's readers.

  Attributes:
    handles: Ops that are handles of the variable, or of slots joined before.
    readers: Ops outside of the set that get the value.
    read_in: Name scopes of the ops that read the value.
    changed_in: Name scopes of the ops that change the value.
  """

  handles: list[int] = dataclasses.field(default_factory=list)
  readers: list[int] = dataclasses.field(default_factory=list)
  read_in: set[str] = dataclasses.field(default_factory=set)
  changed_in: set[str] = dataclasses.field(default_factory=set)


def join(sets: union_find.UnionFind, table: node_table.NodeTable,
         variable_bytes: np.ndarray, variables: Sequence[str],
         placed: bool) -> None:
  """Joins variables with their slots.

  Args:
    sets: Sets of ops that share a device; changed in place.
    table: N nodes.
    variable_bytes: int64 [N], size of the variable of each handle op.
    variables: [N], names of variables that names of nodes do not contain.
    placed: Whether devices of nodes count. Then variables on different devices
      are not joined.
  """
  if np.count_nonzero(variable_bytes) > 1:
    _Joiner(sets, table, variable_bytes, variables, placed).join()


def variables_of(slot: str) -> Iterator[str]:
  """Yields keys (see `key`) of variables that a slot may be named after.

  Keras 3 calls slots 'adam/net_dense_kernel_momentum', tf_keras
  'm/net/dense/kernel' or 'Adam/m/net/dense/kernel', and v1 graphs
  'net/dense/kernel/Adam_1'. All are slots of 'net/dense/kernel'.

  Args:
    slot: Name of a variable.

  Yields:
    Keys; for each way of naming, the longest key first.
  """
  part = _PART.search(slot)
  parts = (slot[:part.start()] if part else slot).split('/')
  end = key(part[0]) if part else ''
  for i in range(1, len(parts)):
    yield key('/'.join(parts[i:])) + end
  for i in range(len(parts) - 1, 0, -1):
    yield key('/'.join(parts[:i])) + end
  if len(parts) > 1:
    words = parts[-1].split('_')
    for i in range(len(words) - 1, 0, -1):
      if not words[i].isdigit():
        yield '_'.join(words[:i]) + end
        yield '_'.join(words[:i])


def key(variable: str) -> str:
  """Returns a variable's name in the form that names of slots contain."""
  return variable.replace('/', '_')


class _Joiner:
  """Joins variables and slots of N nodes."""

  def __init__(self, sets: union_find.UnionFind, table: node_table.NodeTable,
               variable_bytes: np.ndarray, variables: Sequence[str],
               placed: bool) -> None:
    self._sets, self._table, self._placed = sets, table, placed
    names, handles = table.names, np.flatnonzero(variable_bytes > 0).tolist()
    self._bytes = variable_bytes
    self._names = {
        handle: variables[handle] or names[handle] for handle in handles
    }
    self._named: dict[str, list[int]] = collections.defaultdict(list)
    for handle, name in self._names.items():
      self._named[key(name)].append(handle)
    edges = np.asarray(table.edges).reshape(-1, 3)
    edges = edges[edges[:, 1] >= 0]
    edges = edges[np.argsort(edges[:, 0], kind='stable')]
    self._starts = np.searchsorted(edges[:, 0],
                                   np.arange(len(names) + 1)).tolist()
    self._targets = edges[:, 2].tolist()
    numbers = sets.numbers()
    holds = np.isin(numbers, numbers[handles])[edges[:, [0, 2]]].any(axis=1)
    between = numbers[edges[:, 0]] != numbers[edges[:, 2]]
    self._holders = self._read(handles, edges[holds & between][:,
                                                               [0, 2]].tolist())
    self._scopes = {s for h in self._holders.values() for s in h.read_in}

  def join(self) -> None:
    """Joins the slots with their variables."""
    # A slot may end in two slots of one variable, which have to become one set
    # first.
    while any([self._joins(root) for root in list(self._holders)]):
      pass

  def _read(self, handles: Iterable[int],
            edges: Sequence[tuple[int, int]]) -> dict[int, _Holder]:
    """Returns holders by their set's first op, from edges between sets."""
    find, names = self._sets.find, self._table.names
    holders: dict[int, _Holder] = collections.defaultdict(_Holder)
    for handle in handles:
      holders[find(handle)].handles.append(handle)
    hands_on = set()
    for source, target in edges:
      if find(source) in holders:
        hands_on.add(source)
        holder = holders[find(source)]
        holder.readers.append(target)
        holder.read_in.add(_scope(names[source]))
    for _, target in edges:
      if find(target) in holders and target not in hands_on:
        holders[find(target)].changed_in.add(_scope(names[target]))
    return dict(holders)

  def _joins(self, root: int) -> bool:
    """Joins a slot's set with its variable's set; returns whether it did."""
    slot = self._holders.get(root)
    if slot is None or not slot.changed_in:
      return False
    named = self._named_variables(root)
    optimizer = self._optimizer(slot)
    end = self._only_changed(root) if named or optimizer else None
    if end is None:
      return False
    variable = self._holders[end]
    if end not in named and not (optimizer in variable.changed_in and
                                 variable.read_in - {optimizer}):
      return False
    if self._placed and len({
        self._table.nodes[handle].device
        for handle in (slot.handles[0], variable.handles[0])
    }) > 1:
      return False
    self._sets.join(root, end)
    del self._holders[root], self._holders[end]
    self._holders[self._sets.find(root)] = variable
    return True

  def _named_variables(self, root: int) -> set[int]:
    """Returns the sets of the variables that slots of a set are named after."""
    return {
        self._sets.find(other) for handle in self._holders[root].handles
        for name in variables_of(self._names[handle])
        for other in self._named.get(name, ()) if other != handle
    } - {root}

  def _optimizer(self, slot: _Holder) -> str:
    """Returns the only scope that reads and changes a slot; '' if none."""
    size = sum(self._bytes[handle] for handle in slot.handles)
    if len(slot.read_in) != 1 or len(self._scopes) < 2 or size <= _SCALAR_BYTES:
      return ''
    scope, = slot.read_in
    return scope if scope in slot.changed_in else ''

  def _only_changed(self, root: int) -> int | None:
    """Returns the set of the only variable that a slot changes, or None."""
    pending, seen = list(self._holders[root].readers), set()
    end = None
    while pending:
      op = pending.pop()
      if op in seen:
        continue
      seen.add(op)
      found = self._sets.find(op)
      if found not in self._holders:
        pending.extend(self._targets[self._starts[op]:self._starts[op + 1]])
      elif found != root:
        if end not in (None, found):
          return None
        end = found
    return end


def _scope(name: str) -> str:
  """Returns an op's outermost scope without its number; '' if it has none."""
  first, rest = name_parts.without_callers(name).partition('/')[::2]
  return name_parts.without_number(first) if rest else ''
