"""What name scopes tell: gradients of what, and which of several alike.

The names of a training step are those of its layers: 'layer_3/attention/mul',
'decoder/step12/MatMul', 'block_1' for the second of several, and 'layer3_2'
where the scope of layer 3 was opened for the third time. Gradients have the
name of what they are of inside their own, 'gradients/layer_3/mul_grad/mul_1' or
'gradient_tape/layer_3/mul/mul_1'.

No name means anything here. A *family* is what differs in one number alone, and
a number says which *member* of it an op is in.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import native_scopes

# What goes on deeper inside is a detail; also of `name_scopes.cc`.
_DEEPEST = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Scopes:
  """Families and members of the N ops of a graph, in M entries.

  An op has an entry for each number in its scopes, the outermost first. Entries
  of families with a single member are left out.

  Attributes:
    backward: bool [N], ops of gradients, as far as names tell.
    forward_ops: int [N], what a gradient is of; -1 for others.
    ops: int [M], increasing.
    families: int [M].
    members: int [M], in the order of their numbers; the one without a number
      comes first.
    siblings: int [M], equal where families are in the same scope, numbers
      included.
    again: bool [M], the number is of a scope that was opened again.
  """

  backward: np.ndarray
  forward_ops: np.ndarray
  ops: np.ndarray
  families: np.ndarray
  members: np.ndarray
  siblings: np.ndarray
  again: np.ndarray

  def take(self, entries: np.ndarray) -> Scopes:
    """With some of the entries, bool [M]."""
    return dataclasses.replace(
        self, **{
            field: getattr(self, field)[entries]
            for field in ('ops', 'families', 'members', 'siblings', 'again')
        })

  def first(self, num_ops: int) -> np.ndarray:
    """int [N], an op's outermost entry; -1 for none."""
    result = np.full(num_ops, -1)
    result[self.ops[::-1]] = np.arange(len(self.ops))[::-1]
    return result

  def last(self, num_ops: int) -> np.ndarray:
    """int [N], an op's innermost entry; -1 for none."""
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
    parents: int [P], the place around each; 0 is around all, and itself.
    families: int [2 P], of the number of a place and of its being opened again.
    members: int [2 P].
    siblings: int [2 P].
    several: bool [2 P], those of families with more than one member.
  """

  parents: np.ndarray
  families: np.ndarray
  members: np.ndarray
  siblings: np.ndarray
  several: np.ndarray


def _entries(found: native_scopes.NativeScopes) -> _Entries:
  """Those of all places."""
  families = found.families
  pairs, where = unique_rows.distinct([families, found.numbers])
  ends = np.searchsorted(pairs[0], [families, families + 1])
  return _Entries(found.parents, families, where - ends[0], found.siblings,
                  ends[1] - ends[0] > 1)


def _on_the_way(entries: _Entries,
                places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Entries of families with several members, the outermost first.

  Args:
    entries: Of P places.
    places: int [S].

  Returns:
    Those around and of each of the S places, one place after another, and how
    many each has [S].
  """
  way = np.empty((len(places), _DEEPEST), int)
  for depth in reversed(range(_DEEPEST)):
    way[:, depth] = places
    places = entries.parents[places]
  both = (2 * way[:, :, None] + np.arange(2)).reshape(-1, 2 * _DEEPEST)
  some = entries.several[both]
  return both[some], some.sum(axis=1)


def _within(counts: np.ndarray) -> np.ndarray:
  """0 .. n - 1 for each of some counts n."""
  ends = np.cumsum(counts)
  return np.arange(ends[-1] if len(ends) else 0) - np.repeat(
      ends - counts, counts)
