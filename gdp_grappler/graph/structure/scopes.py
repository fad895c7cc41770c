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
import functools
import re

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

_WRAPPER = re.compile(r'gradients?(_\d+)?|gradient_tape(_\d+)?')
_ANY_WRAPPER = 'gradient'
_GRADIENT = '_grad'
# 'layer3', 'layer_3'; opened again: 'layer3_1', 'layer_3_1'.
_NUMBERED = re.compile(r'(.*?)(\d+)(?:_(\d+))?')
# What goes on deeper inside is a detail.
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
  numbers: dict[str, int] = {}
  of_op = [
      numbers.setdefault(
          name.rpartition('/')[0] or name.rpartition('.')[0], len(numbers))
      for name in graph.names
  ]
  scope = np.array(of_op, int).reshape(-1)
  index = dict(zip(graph.names, range(graph.num_ops)))
  tree = _Tree()
  backward = np.zeros(len(numbers), bool)
  of, place = np.full((2, len(numbers)), -1)
  for number, path in enumerate(numbers):
    backward[number], forward, parts = _parsed(path)
    of[number] = index.get(forward, -1)
    place[number] = tree.place(parts)
  entries = tree.entries()
  rows, counts = _on_the_way(entries, place)
  starts = np.cumsum(counts) - counts
  rows = rows[np.repeat(starts[scope], counts[scope]) + _within(counts[scope])]
  return Scopes(backward[scope], of[scope],
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


class _Tree:
  """Scopes in scopes, each of which is looked at once.

  Most of a large graph's names begin alike. So what a family or a scope is
  called is a pair: the number of what is around it, and the last part.
  """

  def __init__(self) -> None:
    self._places: dict[tuple[int, str], int] = {}
    self._families: dict[tuple[int, str], int] = {}
    self._scopes: dict[tuple[int, str], int] = {}
    # By place; what is around all is in a family of its own.
    self._parents, self._names = [0], [(-1, '')]
    self._family, self._number, self._sibling = [-1, -1], [-1, -1], [-1, -1]

  def place(self, parts: list[str]) -> int:
    """The number of a scope, 0 of the outermost."""
    at = 0
    for part in parts[:_DEEPEST]:
      known = self._places.get((at, part))
      at = self._add(at, part) if known is None else known
    return at

  def _add(self, around: int, part: str) -> int:
    base, number, again = _number(part)
    name = base.rstrip('_-')
    opened = f'{name}#' if number >= 0 else f'{name}@'
    self._add_entry((self._family[2 * around], name), number,
                    self._names[around])
    self._add_entry((self._family[2 * around], opened), again,
                    (around, f'{name}{number}'))
    self._parents.append(around)
    self._names.append((around, part))
    return self._places.setdefault((around, part), len(self._names) - 1)

  def _add_entry(self, family: tuple[int, str], number: int,
                 scope: tuple[int, str]) -> None:
    self._family.append(self._families.setdefault(family, len(self._families)))
    self._number.append(number)
    self._sibling.append(self._scopes.setdefault(scope, len(self._scopes)))

  def entries(self) -> _Entries:
    """Those of all places so far."""
    families = np.array(self._family, int)
    pairs, where = unique_rows.distinct([families, np.array(self._number, int)])
    ends = np.searchsorted(pairs[0], [families, families + 1])
    return _Entries(np.array(self._parents, int), families, where - ends[0],
                    np.array(self._sibling, int), ends[1] - ends[0] > 1)


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


def _parsed(path: str) -> tuple[bool, str, list[str]]:
  """Of a scope: whether of gradients, of which op or '', and what it is in."""
  parts = path.replace('.', '/').split('/') if path else []
  if _ANY_WRAPPER not in path:
    return False, '', parts
  wrapper = next(
      (i for i, part in enumerate(parts) if _WRAPPER.fullmatch(part)), None)
  if wrapper is None:
    return False, '', parts
  inside = parts[wrapper + 1:]
  end = next((i for i, part in enumerate(inside) if part.endswith(_GRADIENT)),
             None)
  if end is not None:
    inside = [*inside[:end], inside[end].removesuffix(_GRADIENT)]
  elif not parts[wrapper].startswith('gradient_tape'):
    inside = [*inside, '']
  outside = parts[:wrapper] if end is None else []
  return True, '/'.join([*outside, *inside]), inside[:-1]


@functools.cache
def _number(part: str) -> tuple[str, int, int]:
  """What a name is without its numbers, and both of them; -1 for none."""
  match = _NUMBERED.fullmatch(part)
  if match is None or len(part) > 200:
    return part, -1, -1
  base, number, again = match.groups()
  return base, min(int(number[:9]), 1 << 30), int(again[:9]) if again else -1
