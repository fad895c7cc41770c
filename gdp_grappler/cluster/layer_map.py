"""Devices by name scope: `{'encoder': 'GPU:0', 'decoder/*': 'GPU:1'}`.

A pattern is one or more names, joined by '/'. They are names of Keras layers or
other scopes; the last one may be the name of an op. A pattern matches an op if
the op's path has these names one after the other, at any depth. So 'encoder'
matches 'net/encoder/dense/MatMul' and its gradient,
'gradient_tape/net/encoder/dense/MatMul/MatMul_1'. Names may have the wildcards
of `fnmatch`; 'decoder/*' means the same as 'decoder'. If several patterns match
an op, the pattern with the most names holds, then the pattern that matches at
the greatest depth, then the pattern with the most letters, then the pattern
without wildcards. Wildcards are no letters. '' and '*' hold for all ops that no
other pattern matches.

A name with wildcards is meant for layers. But it may match an op, or a scope
inside a layer: 'a*' matches the op 'add', and the scope 'add_grad' of a loop.
Such a match ranks below other matches of patterns with as many names.

TensorFlow numbers scopes that are opened again, and Keras 3 opens the scope of
a layer twice. So layers `dense` and `dense_1` get the scopes 'dense_1' and
'dense_1_2'. A name therefore also matches its numbered scopes, unless the graph
has a scope of exactly this name.
"""

from __future__ import annotations

import collections
import dataclasses
import fnmatch
import functools
import re
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import name_parts
from gdp_grappler.sharding import choice

_MAX_PATTERNS = 10_000  # Of a map.
_MAX_LETTERS = 1_000  # Of a pattern.
_NUMBERED = re.compile(r'(.+)_\d+')
_NUMBERS = re.compile(r'(?<=.)(_\d+)+$')
_WILDCARD = re.compile(r'[*?\[]')
_WILDCARDS = re.compile(r'[*?]|\[.[^]]*\]')
# Names of the scopes of loops. All ops of a loop are on one device.
_LOOP = re.compile(r'while(_\w+)?')
# Depth of a match that is no layer.
_NO_LAYER = -1


@dataclasses.dataclass(frozen=True, eq=False)
class Matches:
  """The pattern that holds for each of N ops.

  Attributes:
    patterns: int [N], index of the pattern; -1 for none.
    only_default: bool [N], whether this pattern is '' or '*'.
  """

  patterns: np.ndarray
  only_default: np.ndarray
  _written: Sequence[str]
  _paths: Sequence[tuple[str, ...]]

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
    matches; '' if the key matches no op. Each key takes a pass over the graph.
    """
    found = np.where(self.only_default, -1, self.patterns)
    used = set(found.tolist())
    result = {}
    for number, pattern in enumerate(self._written):
      if number in used or not _parts(pattern):
        continue
      matcher = _Matcher([pattern], self._paths)
      own = [i for i, path in enumerate(self._paths) if matcher.best(path) == 0]
      result[pattern] = (self._written[int(np.bincount(found[own]).argmax())]
                         if own else '')
    return result

  @functools.cached_property
  def _near(self) -> dict[str, list[str]]:
    """The most similar name, if any, for each pattern that matches no op."""
    # The number of a part is no number that TensorFlow added.
    known = {
        part if choice.PART in part else _bare(part) for path in self._paths
        for part in path[:-1]
    }
    return {
        pattern: _nearest(pattern, known)
        for pattern, winner in self._winners.items() if not winner
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
          f'{str(pattern)[:40]!r} is no name of a layer or scope. Write for '
          'example "encoder" or "decoder/*".')
    if not isinstance(device, str):
      raise errors.PlanError(
          f'The device of "{pattern}" is {repr(device)[:40]}. Write for '
          'example "GPU:0".')
    cluster_lib.canonical_device(device)
  meant: dict[tuple[str, ...], str] = {}
  for pattern in entries:
    other = meant.setdefault(_parts(pattern), pattern)
    if other != pattern:
      raise errors.PlanError(
          f'"{other}" and "{pattern}" mean the same. Remove one.')
  return tuple(sorted(entries.items()))


def of_file(path: str, entries: Mapping[Any,
                                        Any]) -> tuple[tuple[str, str], ...]:
  """Checks a map of layers that was read from a file; errors name the file."""
  try:
    return checked(entries)
  except (errors.PlanError, errors.ClusterError) as error:
    raise type(error)(f'{path}: {error}') from error


def match(patterns: Sequence[str], names: Sequence[str]) -> Matches:
  """Finds the pattern that holds for each op.

  Args:
    patterns: Patterns as users write them.
    names: [N], names of all ops of one graph.
  """
  paths = list(map(path_of, names))
  matcher = _Matcher(patterns, paths)
  found = np.array(list(map(matcher.best, paths)), int)
  result = np.where(found < 0, matcher.default, found)
  return Matches(result, (found < 0) & (result >= 0), patterns, paths)


def has_wildcard(pattern: str) -> bool:
  """Whether a pattern has a wildcard of `fnmatch`."""
  return _WILDCARD.search(pattern) is not None


def bare_name(name: str) -> str:
  """An op's name without the calls it was inlined from; 'x' for 'x_1'."""
  return '/'.join(map(_bare, path_of(name)))


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
  return '/'.join(_NUMBERS.sub('', part) for part in path_of(name))


def _nearest(pattern: str, known: set[str]) -> list[str]:
  """The known name nearest to the last name of a pattern; [] if none is."""
  last = pattern.rsplit('/', 1)[-1]
  return suggestions.nearest(last, known - {last})


@dataclasses.dataclass(frozen=True)
class _State:
  """The best pattern for a scope, and patterns that match it in part.

  Attributes:
    rank: Names and depth of the best pattern, letters that are no wildcards,
      and whether it has no wildcard; to be maximized.
    best: Index of the best pattern; -1 for none.
    partial: Indices of patterns, and the number of their names that match.
  """

  rank: tuple[int, int, int, bool] = (0, 0, 0, False)
  best: int = -1
  partial: tuple[tuple[int, int], ...] = ()


class _Matcher:
  """Matches patterns with the scopes of a graph, and visits each scope once."""

  def __init__(self, patterns: Sequence[str],
               paths: Sequence[tuple[str, ...]]) -> None:
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
    self._ops = frozenset(paths)
    self._names = {part for path in paths for part in path}
    self._numbered = {
        _bare(part) for part in self._names if _bare(part) != part
    }
    self._states: dict[tuple[str, ...], _State] = {(): _State()}

  def best(self, path: tuple[str, ...]) -> int:
    """Index of the pattern that holds for an op; -1 for none."""
    scopes = path[:-1]
    depth = next(
        d for d in range(len(scopes), -1, -1) if path[:d] in self._states)
    state = self._states[path[:depth]]
    while depth < len(scopes):
      state = self._below(state, depth, path[depth],
                          self._is_inner(path[:depth + 1]))
      depth += 1
      self._states[path[:depth]] = state
    return self._below(state, depth, path[-1], is_inner=True).best

  def _is_inner(self, scope: tuple[str, ...]) -> bool:
    """Whether a scope is no layer: an op's name, a loop, or inside a loop."""
    return scope in self._ops or any(map(_LOOP.fullmatch, scope))

  def _below(self, state: _State, depth: int, part: str,
             is_inner: bool) -> _State:
    """The state of a scope or an op in a scope.

    Args:
      state: State of the outer scope.
      depth: Number of scopes around it.
      part: Its name.
      is_inner: Whether it is no layer.
    """
    rank, best, partial = state.rank, state.best, []
    for pattern, done in (*state.partial, *self._begun(part)):
      parts = self._parts[pattern]
      if not self._fits(parts[done], part):
        continue
      if done + 1 < len(parts):
        partial.append((pattern, done + 1))
        continue
      is_layer = not (is_inner and _WILDCARD.search(parts[done]))
      own = (len(parts), depth if is_layer else _NO_LAYER,
             *self._letters[pattern])
      if own > rank:
        rank, best = own, pattern
    return _State(rank, best, tuple(partial))

  def _begun(self, part: str) -> Iterator[tuple[int, int]]:
    # A set would have another order in each process.
    for start in dict.fromkeys((part, _bare(part), '*')):
      for pattern in self._starts.get(start, ()):
        yield pattern, 0

  def _fits(self, wanted: str, part: str) -> bool:
    """Whether a name of a pattern matches a part of a path."""
    if _WILDCARD.search(wanted):
      return (fnmatch.fnmatchcase(part, wanted) or
              fnmatch.fnmatchcase(_bare(part), wanted))
    # The scope 'dense_1' may be of layer `dense_1`, or of layer `dense`.
    means_other = (wanted in self._numbered and _bare(wanted) != wanted and
                   _bare(wanted) not in self._names)
    if part == wanted:
      return not means_other
    return _bare(part) == wanted and (means_other or wanted not in self._names)


def _parts(pattern: str) -> tuple[str, ...]:
  parts = [part for part in pattern.split('/') if part]
  while parts and parts[-1] == '*':
    parts.pop()
  return tuple(parts)


def path_of(name: str) -> tuple[str, ...]:
  """Scopes and name of an op, without the calls it was inlined from."""
  parts = name.split('/')
  return tuple(
      p for p in parts[:-1] if not name_parts.is_caller(p)) + (parts[-1],)


@functools.lru_cache(maxsize=20_000)
def _bare(part: str) -> str:
  """'dense' for 'dense_1'."""
  numbered = _NUMBERED.fullmatch(part)
  return numbered[1] if numbered else part
