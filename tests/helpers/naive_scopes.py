"""A simple version of `name_scopes.cc`."""

from __future__ import annotations

import re

import numpy as np

from gdp_grappler.graph.structure import native_scopes

_WRAPPER = re.compile(r'(gradients?|gradient_tape)(_\d+)?', re.ASCII)
_GRADIENT = '_grad'
# Scopes 'layer3' and 'layer_3', or 'layer3_1' and 'layer_3_1' if opened again.
_NUMBERED = re.compile(r'(.*?)(\d+)(?:_(\d+))?', re.ASCII)
_DEEPEST = 8


def read(names: list[str]) -> native_scopes.NativeScopes:
  """See `native_scopes.read`."""
  paths: dict[str, int] = {}
  of_names = [
      paths.setdefault(
          name.rpartition('/')[0] or name.rpartition('.')[0], len(paths))
      for name in names
  ]
  tree, backward, of, places = _Tree(), [], [], []
  for path in paths:
    is_gradient, forward, parts = _parsed(path)
    backward.append(is_gradient)
    # Of equal names the last one counts.
    of.append(
        len(names) - 1 - names[::-1].index(forward) if forward in names else -1)
    places.append(tree.place(parts))
  return native_scopes.NativeScopes(
      *map(np.array, (of_names, backward, of, places, tree.parents,
                      tree.families, tree.numbers, tree.siblings)))


class _Tree:
  """A tree of scopes; the parent and the name identify a scope."""

  def __init__(self) -> None:
    self.parents, self._names = [0], [(-1, '')]
    self.families, self.numbers, self.siblings = [-1, -1], [-1, -1], [-1, -1]
    self._families: dict[tuple[int, str], int] = {}
    self._scopes: dict[tuple[int, str], int] = {}

  def place(self, parts: list[str]) -> int:
    """Returns the number of a scope; the outermost scope is 0."""
    at = 0
    for part in parts[:_DEEPEST]:
      if (at, part) not in self._names:
        self._add(at, part)
      at = self._names.index((at, part))
    return at

  def _add(self, around: int, part: str) -> None:
    base, number, again = _number(part)
    name, family = base.rstrip('_-'), self.families[2 * around]
    opened = f'{name}#' if number >= 0 else f'{name}@'
    self._add_entry((family, name), number, self._names[around])
    self._add_entry((family, opened), again, (around, f'{name}{number}'))
    self.parents.append(around)
    self._names.append((around, part))

  def _add_entry(self, family: tuple[int, str], number: int,
                 scope: tuple[int, str]) -> None:
    self.families.append(self._families.setdefault(family, len(self._families)))
    self.numbers.append(number)
    self.siblings.append(self._scopes.setdefault(scope, len(self._scopes)))


def _parsed(path: str) -> tuple[bool, str, list[str]]:
  """Returns whether a scope has gradients, of which op or '', and its parts."""
  parts = path.replace('.', '/').split('/') if path else []
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


def _number(part: str) -> tuple[str, int, int]:
  """Returns a name without its numbers, and both numbers; -1 for none."""
  match = _NUMBERED.fullmatch(part)
  if match is None or len(part) > 200:
    return part, -1, -1
  base, number, again = match.groups()
  return base, int(number[:9]), int(again[:9]) if again else -1


def levels(names: list[str], depths: tuple[int, ...],
           wrappers: tuple[str, ...]) -> np.ndarray:
  """See `native_scopes.levels`."""
  result = np.empty((len(depths), len(names)), int)
  scopes = [
      '/'.join(part for part in name.rpartition('/')[0].split('/')
               if not part.startswith(wrappers)) for name in names
  ]
  for row, depth in zip(result, depths):
    texts = ['/'.join(scope.split('/')[:depth]) for scope in scopes]
    row[:] = [sorted(set(texts)).index(text) for text in texts]
  return result
