"""Families and members of ops, and ops of gradients, from name scopes.

The names of a training step contain those of its layers:
'layer_3/attention/mul', 'decoder/step12/MatMul', 'block_1' for the second
block, and 'layer3_2' if the scope of layer 3 was opened for the third time. The
name of a gradient contains that of its forward op:
'gradients/layer_3/mul_grad/mul_1' or 'gradient_tape/layer_3/mul/mul_1'.

The words in names do not matter. Scopes that differ only in one number are a
*family*, and the number says which *member* of the family an op is in.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import native_scopes

# Limit of nested scopes that are read, also in `name_scopes.cc`.
_DEEPEST = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Scopes:
  """Families and members of the N ops of a graph, in M entries.

  An op has an entry for each number in its scopes, the outermost first. Entries
  of families with a single member are left out.

  Attributes:
    backward: bool [N], whether an op is one of gradients, by its name.
    forward_ops: int [N], the forward op of a gradient; -1 for other ops.
    ops: int [M], op of each entry, increasing.
    families: int [M], family of each entry.
    members: int [M], in the order of their numbers. The member without a number
      comes first.
    siblings: int [M], equal for families in the same scope. Scopes that differ
      in a number are different scopes.
    again: bool [M], whether the number belongs to a scope that was opened
      again.
  """

  backward: np.ndarray
  forward_ops: np.ndarray
  ops: np.ndarray
  families: np.ndarray
  members: np.ndarray
  siblings: np.ndarray
  again: np.ndarray

  def take(self, entries: np.ndarray) -> Scopes:
    """Returns Scopes with some of the entries, bool [M]."""
    return dataclasses.replace(
        self, **{
            field: getattr(self, field)[entries]
            for field in ('ops', 'families', 'members', 'siblings', 'again')
        })

  def first(self, num_ops: int) -> np.ndarray:
    """Returns an op's outermost entry, int [N]; -1 for none."""
    result = np.full(num_ops, -1)
    result[self.ops[::-1]] = np.arange(len(self.ops))[::-1]
    return result

  def last(self, num_ops: int) -> np.ndarray:
    """Returns an op's innermost entry, int [N]; -1 for none."""
    result = np.full(num_ops, -1)
    result[self.ops] = np.arange(len(self.ops))
    return result


def read(graph: op_graph.OpGraph) -> Scopes:
  """Reads the names of N ops."""
  found = native_scopes.read(graph.names)
  scope, entries = found.scopes, _entries(found)
  rows, counts = _on_the_way(entries, found.places)
  starts = np.cumsum(counts) - counts
  rows = rows[np.repeat(starts[scope], counts[scope]) + _within(counts[scope])]
  return Scopes(found.backward[scope], found.forward_ops[scope],
                np.repeat(np.arange(graph.num_ops),
                          counts[scope]), entries.families[rows],
                entries.members[rows], entries.siblings[rows], rows % 2 == 1)


@dataclasses.dataclass(frozen=True, eq=False)
class _Entries:
  """The entries of P places in a tree of scopes, two each.

  Attributes:
    parents: int [P], parent of each place. Place 0 is the root, and its own
      parent.
    families: int [2 P], see `NativeScopes`.
    members: int [2 P], see `Scopes`.
    siblings: int [2 P], see `NativeScopes`.
    several: bool [2 P], whether a family has more than one member.
  """

  parents: np.ndarray
  families: np.ndarray
  members: np.ndarray
  siblings: np.ndarray
  several: np.ndarray


def _entries(found: native_scopes.NativeScopes) -> _Entries:
  """Returns the entries of all places."""
  families = found.families
  pairs, where = unique_rows.distinct([families, found.numbers])
  ends = np.searchsorted(pairs[0], [families, families + 1])
  return _Entries(found.parents, families, where - ends[0], found.siblings,
                  ends[1] - ends[0] > 1)


def _on_the_way(entries: _Entries,
                places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns entries of families with several members, the outermost first.

  Args:
    entries: Entries of P places.
    places: int [S], places in the tree.

  Returns:
    The entries of each place and of the places around it, one place after
    another, and how many entries each place has [S].
  """
  way = np.empty((len(places), _DEEPEST), int)
  for depth in reversed(range(_DEEPEST)):
    way[:, depth] = places
    places = entries.parents[places]
  both = (2 * way[:, :, None] + np.arange(2)).reshape(-1, 2 * _DEEPEST)
  some = entries.several[both]
  return both[some], some.sum(axis=1)


def _within(counts: np.ndarray) -> np.ndarray:
  """Returns 0 .. n - 1 for each of the given counts n, one after another."""
  ends = np.cumsum(counts)
  return np.arange(ends[-1] if len(ends) else 0) - np.repeat(
      ends - counts, counts)
