"""Devices by name scope: `{'encoder': 'GPU:0', 'decoder/*': 'GPU:1'}`.

A pattern is one or more names, joined by '/'. They are names of Keras layers or
other scopes. If no layer or scope has the last name, this may be the name of an
op. A pattern matches an op if the op's path has these names one after the
other, at any depth. So 'encoder' matches 'net/encoder/dense/MatMul' and its
gradient, 'gradient_tape/net/encoder/dense/MatMul/MatMul_1'. Names may have the
wildcards of `fnmatch`; 'decoder/*' means the same as 'decoder'. If several
patterns match an op, the pattern with the most names holds, then the pattern
that matches at the greatest depth, then the pattern with the most letters, then
the pattern without wildcards. Wildcards are no letters. '' and '*' hold for all
ops that no other pattern matches.

A name with wildcards is meant for layers. But it may match the scope of a loop,
and an op if it matches no layer: 'a*' then matches the op 'add'. Such a match
ranks below other matches of patterns with as many names.

TensorFlow numbers scopes that are opened again, and Keras 3 opens the scope of
a layer twice. So layers `dense` and `dense_1` get the scopes 'dense_1' and
'dense_1_2'. A name therefore also matches its numbered scopes, unless the graph
has a scope of exactly this name. Where a caller of `match` knows the layer of a
scope, the name of the layer decides.
"""

from __future__ import annotations

import collections
import dataclasses
import fnmatch
import functools
import re
import types
from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import name_parts
from gdp_grappler.sharding import choice

_Path = tuple[str, ...]
_MAX_PATTERNS = 10_000  # Of a map.
_MAX_LETTERS = 1_000  # Of a pattern.
_NUMBERED = re.compile(r'(.+)_\d+')
_NUMBERS = re.compile(r'(?<=.)(_\d+)+$')
_WILDCARD = re.compile(r'[*?\[]')
_WILDCARDS = re.compile(r'[*?]|\[.[^]]*\]')
# Names of the scopes of loops.
_LOOP = re.compile(r'while(_\w+)?')
# Depth of a match that is no layer.
_NO_LAYER = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Matches:
  """The pattern that holds for each of N ops.

  Attributes:
    patterns: int [N], index of the pattern; -1 for none.
    only_default: bool [N], whether this pattern is '' or '*'.
    matching: [N], indices of all patterns that match each op.
  """

  patterns: np.ndarray
  only_default: np.ndarray
  matching: Sequence[tuple[int, ...]]
  _written: Sequence[str]
  _scopes: _Scopes

  @property
  def idle(self) -> tuple[str, ...]:
    """A message for each pattern that matches no op."""
    return tuple(f'"{pattern}"' + ''.join(f' (did you mean "{n}"?)'
                                          for n in names)
                 for pattern, names in self._near.items())

  @property
  def overruled(self) -> tuple[str, ...]:
    """A message for each pattern whose ops have other, better patterns."""
    return tuple(f'"{pattern}" is overruled by "{winner}"'
                 for pattern, winner in self._winners.items() if winner)

  @property
  def is_near(self) -> bool:
    """Whether a name is similar to a pattern that matches no op."""
    return any(self._near.values())

  @functools.cached_property
  def _winners(self) -> dict[str, str]:
    """Patterns that hold for no op, each with the pattern that overrules it.

    The value is the pattern that holds for most of the ops that the key
    matches; '' if the key matches no op.
    """
    used = set(self.patterns[~self.only_default].tolist())
    own: dict[int, list[int]] = {
        number: [] for number, pattern in enumerate(self._written)
        if number not in used and _parts(pattern)
    }
    for op, numbers in enumerate(self.matching):
      for number in own.keys() & numbers:
        own[number].append(op)
    return {
        self._written[number]: (self._written[int(
            np.bincount(self.patterns[ops]).argmax())] if ops else ''
                               ) for number, ops in own.items()
    }

  @functools.cached_property
  def _near(self) -> dict[str, list[str]]:
    """The most similar name, if any, for each pattern that matches no op."""
    # The number of a part is no number that TensorFlow added.
    known = {
        part if choice.PART in part else _bare(part)
        for path in self._scopes.paths for part in path[:-1]
    } | set(self._scopes.layers.values())
    last = {
        pattern: pattern.rsplit('/', 1)[-1]
        for pattern, winner in self._winners.items() if not winner
    }
    return {
        pattern: suggestions.nearest(name, known - {name})
        for pattern, name in last.items()
    }


def checked(entries: Mapping[Any, Any]) -> tuple[tuple[str, str], ...]:
  """Checks a map of layers, and returns sorted pairs of pattern and device.

  Raises:
    PlanError: there are no or too many entries, two patterns mean the same, or
      a key is no pattern.
    ClusterError: a value is no device.
  """
  if not 0 < len(entries) <= _MAX_PATTERNS:
    raise errors.PlanError(
        f'A map of layers has {len(entries)} entries; give 1 to '
        f'{_MAX_PATTERNS}, such as {{"encoder": "GPU:0"}}.')
  for pattern, device in entries.items():
    if not isinstance(pattern, str) or len(pattern) > _MAX_LETTERS:
      raise errors.PlanError(
          f'{errors.shown(pattern)} is no name of a layer or scope. Write for '
          'example "encoder" or "decoder/*".')
    if not isinstance(device, str):
      raise errors.PlanError(
          f'The device of "{pattern}" is {errors.shown(device)}. Write for '
          'example "GPU:0".')
    cluster_lib.canonical_device(device)
  meant: dict[_Path, str] = {}
  for pattern in entries:
    other = meant.setdefault(_parts(pattern), pattern)
    if other != pattern:
      raise errors.PlanError(
          f'"{other}" and "{pattern}" mean the same. Remove one.')
  return tuple(sorted(entries.items()))


def match(
    patterns: Sequence[str], names: Sequence[str],
    layers: Mapping[_Path, str] = types.MappingProxyType({}),
    as_written: Mapping[_Path, Collection[int]] = types.MappingProxyType({})
) -> Matches:
  """Finds the pattern that holds for each op.

  Args:
    patterns: Patterns as users write them.
    names: [N], names of all ops of one graph.
    layers: Names of layers that are known, by the path of a scope.
    as_written: By the path of a scope or op, indices of the patterns whose
      names, unless they have wildcards, must have the same numbers as it.
  """
  scopes = _Scopes(names, layers)
  matcher = _Matcher(patterns, scopes, as_written)
  states = [matcher.state_of_op(path) for path in scopes.paths]
  found = np.array([state.best for state in states], int)
  result = np.where(found < 0, matcher.default, found)
  return Matches(result, (found < 0) & (result >= 0),
                 [state.matching for state in states], patterns, scopes)


def has_wildcard(pattern: str) -> bool:
  """Whether a pattern has a wildcard of `fnmatch`."""
  return _WILDCARD.search(pattern) is not None


def bare_name(name: str) -> str:
  """An op's name without the calls it was inlined from; 'x' for 'x_1'."""
  return '/'.join(map(_bare, _without_callers(name)))


def outermost(name: str) -> str:
  """The first scope of an op, without its number; '' if it is in none.

  Scopes that Grappler made do not count.
  """
  of_user = (p for p in path_of(name)[:-1] if p not in name_parts.OF_GRAPPLER)
  return _bare(next(of_user, ''))


def plain_name(name: str) -> str:
  """An op's name like `bare_name`, but 'x' also for 'x_1_2'.

  Keras 3 also numbers the scope of a model whose name has a number. For
  example, 'sequential_1_1' is the scope of the second model.
  """
  return '/'.join(_NUMBERS.sub('', part) for part in _without_callers(name))


@dataclasses.dataclass(frozen=True)
class _State:
  """The best pattern for a scope, and patterns that match it in part.

  Attributes:
    rank: Names and depth of the best pattern, letters that are no wildcards,
      and whether it has no wildcard; to be maximized.
    best: Index of the best pattern; -1 for none.
    partial: Indices of patterns, and the number of their names that match.
    matching: Indices of all patterns that match the scope.
  """

  rank: tuple[int, int, int, bool] = (0, 0, 0, False)
  best: int = -1
  partial: tuple[tuple[int, int], ...] = ()
  matching: tuple[int, ...] = ()


class _Names:
  """Names in a graph, and what TensorFlow may have numbered."""

  def __init__(self, names: Iterable[str]) -> None:
    self._names = set(names)
    self._numbered = {
        _bare(part) for part in self._names if _bare(part) != part
    }

  def fits(self, wanted: str, part: str) -> bool:
    """Whether a name without wildcards matches one of the names."""
    # The scope 'dense_1' may be of layer `dense_1`, or of layer `dense`.
    means_other = (wanted in self._numbered and _bare(wanted) != wanted and
                   _bare(wanted) not in self._names)
    if part == wanted:
      return not means_other
    return _bare(part) == wanted and (means_other or wanted not in self._names)


class _Scopes:
  """The scopes of N ops.

  Attributes:
    paths: [N], scopes and name of each op.
    of_layers: Scopes that may be layers. A scope with the name of an op is
      none: it has the op's constants or its gradients. Grappler may have
      removed the op, so a scope that has only gradients is none either.
    layers: Names of layers that are known, by the path of a scope.
    layer_names: Names of `of_layers`.
    all_names: Names of all scopes and ops.
  """

  def __init__(self, names: Sequence[str], layers: Mapping[_Path, str]) -> None:
    self.paths = list(map(path_of, names))
    self.layers = layers
    ops = frozenset(self.paths)
    self.of_layers: dict[_Path, None] = {}
    for scope in dict.fromkeys(path[:-1]
                               for name, path in zip(names, self.paths)
                               if not name_parts.is_gradient(name)):
      for end in range(1, len(scope) + 1):
        if scope[:end] in ops:
          break
        self.of_layers[scope[:end]] = None
    self.layer_names = _Names(scope[-1] for scope in self.of_layers)
    self.all_names = _Names(part for path in self.paths for part in path)


class _Matcher:
  """Matches patterns with the scopes of a graph, and visits each scope once."""

  def __init__(self, patterns: Sequence[str], scopes: _Scopes,
               as_written: Mapping[_Path, Collection[int]]) -> None:
    self._as_written = as_written
    self._scopes, self._named = scopes, frozenset(scopes.layers.values())
    self._parts = [_parts(pattern) for pattern in patterns]
    self.default = next((i for i, parts in enumerate(self._parts) if not parts),
                        -1)
    self._starts = collections.defaultdict(list)
    for i, parts in enumerate(self._parts):
      if parts:
        self._starts['*' if _WILDCARD.search(parts[0]) else parts[0]].append(i)
    self._letters = [(len(_WILDCARDS.sub('', ''.join(parts))),
                      not has_wildcard('/'.join(parts)))
                     for parts in self._parts]
    self._states: dict[_Path, _State] = {(): _State()}
    # Patterns that match a layer, and so match no op. All layers are visited
    # before the first op.
    self._of_layers: set[int] = set()
    for scope in scopes.of_layers:
      self._state(scope)

  def state_of_op(self, path: _Path) -> _State:
    """The best pattern for an op, and all patterns that match it."""
    return self._below(self._state(path[:-1]), path, None)

  def _state(self, scope: _Path) -> _State:
    depth = next(
        d for d in range(len(scope), -1, -1) if scope[:d] in self._states)
    state = self._states[scope[:depth]]
    for end in range(depth + 1, len(scope) + 1):
      state = self._below(state, scope[:end], self._layer(scope[:end]))
      self._states[scope[:end]] = state
    return state

  def _layer(self, scope: _Path) -> str | None:
    """Name of the layer of a scope; None if it is unknown."""
    return self._scopes.layers.get(
        tuple(p for p in scope if p not in name_parts.OF_GRAPPLER))

  def _below(self, state: _State, path: _Path, layer: str | None) -> _State:
    """The state of a scope or an op in a scope.

    Args:
      state: State of the outer scope.
      path: Scopes around it, and its name.
      layer: Name of the layer whose scope it is; None if it is unknown.
    """
    rank, best, matching = state.rank, state.best, state.matching
    partial = []
    may_be_layer = path in self._scopes.of_layers
    as_written = self._as_written.get(path, ())
    for pattern, done in (*state.partial, *self._begun(path[-1], layer)):
      parts = self._parts[pattern]
      known = path[-1] if (pattern in as_written and
                           not has_wildcard(parts[done])) else layer
      if not self._fits(parts[done], path[-1], known, may_be_layer):
        continue
      if done + 1 < len(parts):
        partial.append((pattern, done + 1))
        continue
      # All ops of a loop are on one device, so its scopes are no layers.
      is_layer = may_be_layer and not any(map(_LOOP.fullmatch, path))
      if is_layer:
        self._of_layers.add(pattern)
      elif not may_be_layer and pattern in self._of_layers:
        continue
      matching += pattern,
      counts = is_layer or not _WILDCARD.search(parts[done])
      own = (len(parts), len(path) - 1 if counts else _NO_LAYER,
             *self._letters[pattern])
      if own > rank:
        rank, best = own, pattern
    return _State(rank, best, tuple(partial), matching)

  def _begun(self, part: str, layer: str | None) -> Iterator[tuple[int, int]]:
    # A set would have another order in each process.
    for start in dict.fromkeys((part, layer or _bare(part), '*')):
      for pattern in self._starts.get(start, ()):
        yield pattern, 0

  def _fits(self, wanted: str, part: str, layer: str | None,
            may_be_layer: bool) -> bool:
    """Whether a name of a pattern matches a part of a path."""
    if layer is not None:
      return (fnmatch.fnmatchcase(layer, wanted)
              if _WILDCARD.search(wanted) else wanted == layer or
              wanted == part and wanted not in self._named)
    if _WILDCARD.search(wanted):
      return (fnmatch.fnmatchcase(part, wanted) or
              fnmatch.fnmatchcase(_bare(part), wanted))
    # Keras 3 casts inputs in a scope 'Cast', which is not the layer `Cast`.
    if wanted in self._named and name_parts.names_an_op(part):
      return False
    scopes = self._scopes
    return (scopes.layer_names if may_be_layer else scopes.all_names).fits(
        wanted, part)


def _parts(pattern: str) -> _Path:
  parts = [part for part in pattern.split('/') if part]
  while parts and parts[-1] == '*':
    parts.pop()
  return tuple(parts)


def path_of(name: str) -> _Path:
  """Scopes and name of an op, without the calls it was inlined from."""
  return _without_callers(name_parts.without_infix(name))


def _without_callers(name: str) -> _Path:
  parts = name.split('/')
  return tuple(
      p for p in parts[:-1] if not name_parts.is_caller(p)) + (parts[-1],)


@functools.lru_cache(maxsize=20_000)
def _bare(part: str) -> str:
  """'dense' for 'dense_1'."""
  numbered = _NUMBERED.fullmatch(part)
  return numbered[1] if numbered else part
