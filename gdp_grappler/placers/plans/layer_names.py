"""The names that users gave the layers in whose scopes ops are.

TensorFlow numbers a scope that is opened again, and Keras 3 opens the scope of
a layer twice. So 'dense_1' may be the scope of layer `dense_1`, or of a call of
layer `dense`. The variables that a scope reads tell the two apart, because
Keras puts the names of layers into the names of variables. Models in a model
may have variables without the name of the model. Then the other scopes tell
whether each scope was opened twice.
"""

from __future__ import annotations

import collections
from typing import Sequence

from gdp_grappler.graph import name_parts

_Path = tuple[str, ...]


def of(paths: Sequence[_Path], holders: Sequence[int],
       labels: Sequence[str]) -> dict[_Path, str]:
  """Returns the names of layers by the path of a scope.

  A path is absent if nothing tells that its last name is not the layer's. All
  calls of a layer get the same name.

  Args:
    paths: [N], the scopes around each op, the outermost first.
    holders: [N], number of the op whose variable each op passes on; or -1.
    labels: [N], name of the variable that each op holds; '' for none.
  """
  return _Namer(paths, holders, labels).names


class _Namer:
  """Names the scopes of N ops."""

  def __init__(self, paths: Sequence[_Path], holders: Sequence[int],
               labels: Sequence[str]) -> None:
    self._used: dict[_Path, set[int]] = {}
    for path, holder in dict.fromkeys(zip(paths, holders)):
      for end in range(1, len(path) + 1):
        self._used.setdefault(path[:end], set()).update({holder} - {-1})
    self._found: dict[tuple[_Path, int], tuple[str, _Path]] = {}
    levels: dict[_Path, list[_Path]] = {}
    for path, used in self._used.items():  # Outer scopes come first.
      levels.setdefault(path[:-1], []).append(path)
      for holder in used:
        self._found[path, holder] = self._in_label(path, holder, labels[holder])
    self._twice = self._opened_twice()
    self.names: dict[_Path, str] = {}
    for siblings in levels.values():
      self.names.update(self._level(siblings))

  def _level(self, siblings: list[_Path]) -> dict[_Path, str]:
    """Returns the names of sibling scopes that do not keep their names."""
    used = [path for path in siblings if self._used[path]]
    twice = self._twice
    if twice is None:
      twice = all(_bare(path) != path[-1] for path in used)
    told = {path: name for path in used if (name := self._told(path))}
    others = [path for path in used if path not in told]
    guessed = ({path: _bare(path) for path in others}
               if twice else self._numbered_by_calls(others, told, siblings))
    names = told | self._without_strangers(guessed, told)
    if used and twice:
      self._name_without_variables(siblings, names)
    # A name that variables tell stays, even if it is that of the scope.
    return {
        path: name for path, name in names.items()
        if name != path[-1] or path in told
    }

  def _numbered_by_calls(self, paths: list[_Path], told: dict[_Path, str],
                         siblings: list[_Path]) -> dict[_Path, str]:
    """Names scopes of which only repeated calls have a number."""
    result: dict[_Path, str] = {}
    scopes = {path[-1]: path for path in siblings}
    for path in sorted(paths, key=lambda path: (len(path[-1]), path)):
      first = scopes.get(_bare(path))
      name = path[-1]
      if first is not None and first != path:
        whose = result.get(first) or told.get(first) or first[-1]
        # A call of the layer of this scope, or of a layer whose name was taken.
        if whose != first[-1] or self._used[path] <= self._used[first]:
          name = _bare(path)
      result[path] = name
    return result

  def _without_strangers(self, guessed: dict[_Path, str],
                         told: dict[_Path, str]) -> dict[_Path, str]:
    """Returns guesses without those of layers that only share a name.

    Calls of one layer read common variables.
    """
    alike: dict[str, list[_Path]] = {}
    for path, name in (told | guessed).items():
      alike.setdefault(name, []).append(path)
    return {
        path: name for path, name in guessed.items()
        if all(self._used[path] & self._used[other] or path == other
               for other in alike[name]) or path[-1] in alike
    }

  def _name_without_variables(self, siblings: list[_Path],
                              names: dict[_Path, str]) -> None:
    """Names scopes without variables, beside layers opened twice."""
    counts = collections.Counter(map(_bare, siblings))
    taken = set(names.values())
    for path in siblings:
      if not self._used[path] and (counts[_bare(path)] == 1 or
                                   path[-1] in taken):
        names[path] = _bare(path)

  def _opened_twice(self) -> bool | None:
    """Whether the scopes of layers have a number more than the layers.

    None if no variable tells.
    """
    count, told = 0, False
    for path in self._used:
      name = self._told(path)
      told |= bool(name)
      if name == path[-1]:
        count -= 1
      elif name and (*path[:-1], name) not in self._used:
        count += 1
    return count > 0 if told else None

  def _told(self, path: _Path) -> str:
    """Returns the name that the variables of a scope tell; '' if they do not.

    A variable without the name of the layer tells nothing.
    """
    told = {self._found[path, holder][0] for holder in self._used[path]} - {''}
    return told.pop() if len(told) == 1 else ''

  def _in_label(self, path: _Path, holder: int,
                label: str) -> tuple[str, _Path]:
    """Returns a layer's name in the name of a variable, and what is after it.

    Args:
      path: Scope of the layer.
      holder: Op that holds the variable.
      label: Name of the variable.
    """
    if len(path) > 1:
      rest = self._found[path[:-1], holder][1]
    else:
      rest = () if name_parts.is_guess(label) else tuple(label.split('/')[:-1])
    for i, part in enumerate(rest):
      if part in (path[-1], _bare(path)):
        return part, rest[i + 1:]
    return '', rest


def _bare(path: _Path) -> str:
  """Returns 'dense' for a path that ends with 'dense_1'."""
  return name_parts.without_number(path[-1])


def named(path: _Path, names: dict[_Path, str]) -> _Path:
  """Returns a path with the names of layers in place of scopes."""
  return tuple(
      names.get(path[:i], part) for i, part in enumerate(path, start=1))
