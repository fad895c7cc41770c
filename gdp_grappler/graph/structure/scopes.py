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

_WRAPPER = re.compile(r'gradients?(_\d+)?|gradient_tape(_\d+)?')
_GRADIENT = '_grad'
_SEPARATOR = re.compile(r'[/.]')
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


_Entry = tuple[str, int, str, bool]


@dataclasses.dataclass(frozen=True)
class _Scope:
  """One scope: whether of gradients, of what, and its numbers.

  Attributes:
    backward: Whether it is of gradients.
    forward: The op whose gradient it is, or ''.
    entries: Family, number, siblings and whether opened again, of each.
  """

  backward: bool
  forward: str
  entries: tuple[_Entry, ...]


def read(graph: op_graph.OpGraph) -> Scopes:
  """Reads the names of N ops."""
  numbers: dict[str, int] = {}
  of_op = [
      numbers.setdefault(
          name.rpartition('/')[0] or name.rpartition('.')[0], len(numbers))
      for name in graph.names
  ]
  scopes = [_parsed(path) for path in numbers]
  scope = np.array(of_op, int).reshape(-1)
  backward = np.array([s.backward for s in scopes], bool)[scope]
  index = {name: op for op, name in enumerate(graph.names)}
  of = np.array([index.get(s.forward, -1) for s in scopes], int)[scope]
  counts = np.array([len(s.entries) for s in scopes], int)
  entries = [entry for s in scopes for entry in s.entries]
  families, members = _members(entries)
  siblings = _codes([entry[2] for entry in entries])
  starts = np.cumsum(counts) - counts
  rows = np.repeat(starts[scope], counts[scope]) + _within(counts[scope])
  found = Scopes(backward, of, np.repeat(np.arange(graph.num_ops),
                                         counts[scope]), families[rows],
                 members[rows], siblings[rows],
                 np.array([entry[3] for entry in entries], bool)[rows])
  return found.take(_several(found.families, found.members))


def _members(entries: list[_Entry]) -> tuple[np.ndarray, np.ndarray]:
  """Families of entries [m], and which member of it each is of [m]."""
  families = _codes([entry[0] for entry in entries])
  numbers = np.array([entry[1] for entry in entries], np.int64).reshape(-1)
  pairs, where = np.unique(np.stack([families, numbers]), axis=1,
                           return_inverse=True)
  first = np.searchsorted(pairs[0], pairs[0])
  return families, (np.arange(pairs.shape[1]) - first)[where.reshape(-1)]


def _several(families: np.ndarray, members: np.ndarray) -> np.ndarray:
  """bool [M], entries of families with more than one member in use."""
  highest = np.zeros(int(families.max(initial=-1)) + 1, int)
  lowest = np.full(len(highest), np.iinfo(int).max)
  np.maximum.at(highest, families, members)
  np.minimum.at(lowest, families, members)
  return (highest > lowest)[families]


def _codes(texts: list[str]) -> np.ndarray:
  """int [m], equal for equal texts."""
  numbers: dict[str, int] = {}
  return np.array([numbers.setdefault(text, len(numbers)) for text in texts],
                  int).reshape(-1)


def _within(counts: np.ndarray) -> np.ndarray:
  """0 .. n - 1 for each of some counts n."""
  ends = np.cumsum(counts)
  return np.arange(ends[-1] if len(ends) else 0) - np.repeat(
      ends - counts, counts)


def _parsed(path: str) -> _Scope:
  parts = _SEPARATOR.split(path) if path else []
  wrapper = next(
      (i for i, part in enumerate(parts) if _WRAPPER.fullmatch(part)), None)
  if wrapper is None:
    return _Scope(False, '', _entries(parts))
  inside = parts[wrapper + 1:]
  end = next((i for i, part in enumerate(inside) if part.endswith(_GRADIENT)),
             None)
  if end is not None:
    inside = [*inside[:end], inside[end].removesuffix(_GRADIENT)]
  elif not parts[wrapper].startswith('gradient_tape'):
    inside = [*inside, '']
  outside = parts[:wrapper] if end is None else []
  return _Scope(True, '/'.join([*outside, *inside]), _entries(inside[:-1]))


def _entries(parts: list[str]) -> tuple[_Entry, ...]:
  result: list[_Entry] = []
  outside = free = ''
  for part in parts[:_DEEPEST]:
    base, number, again = _number(part)
    name = base.rstrip('_-')
    result.append((f'{free}/{name}', number, outside, False))
    result.append((f'{free}/{name}#' if number >= 0 else f'{free}/{name}@',
                   again, f'{outside}/{name}{number}', True))
    outside, free = f'{outside}/{part}', f'{free}/{name}'
  return tuple(result)


@functools.cache
def _number(part: str) -> tuple[str, int, int]:
  """What a name is without its numbers, and both of them; -1 for none."""
  match = _NUMBERED.fullmatch(part)
  if match is None or len(part) > 200:
    return part, -1, -1
  base, number, again = match.groups()
  return base, min(int(number[:9]), 1 << 30), int(again[:9]) if again else -1
