"""Compares names of ops in spite of the numbers that Keras gives.

Keras counts per program what the user did not name. The first model has the
layers `dense` and `dense_1`, and the same model made again has `dense_2` and
`dense_3`. Ranks in place of numbers make the names of both models equal.
"""

from __future__ import annotations

import functools
import re
from typing import Collection, Sequence

from gdp_grappler.graph import op_graph

# Keras also numbers the scope of a model whose name has a number: 'model_1_1'.
_NUMBERS = re.compile(r'(?<=.)(?:_\d+)+$')
# Ops without a scope are inputs of a step. tf_keras puts the names of layers
# into their names: 'model_dense_3_matmul_readvariableop_resource'.
_INSIDE = re.compile(r'(?<=.)_\d+(?=_|$)')
_Path = tuple[str, ...]


def ranked(names: Collection[str]) -> list[str]:
  """Returns names with ranks among siblings in place of numbers.

  Siblings are in one scope, and have the same name but for the number. The
  number of siblings is a part of the result: 'dense_3/MatMul' becomes
  'dense, 1 of 2/MatMul, 0 of 1'. So names of two graphs differ if a scope has
  more siblings in one of the graphs.

  Args:
    names: Names of all ops of a graph. Equal names get equal results.
  """
  paths = [tuple(name.split('/')) for name in names]
  families: dict[tuple[_Path, str], set[str]] = {}
  for path in {p[:i] for p in paths for i in range(1, len(p) + 1)}:
    bare = _pattern(path[:-1]).sub('', path[-1])
    families.setdefault((path[:-1], bare), set()).add(path[-1])
  parts = {(*scope, part): f'{bare}, {rank} of {len(family)}'
           for (scope, bare), family in families.items()
           for rank, part in enumerate(
               sorted(family, key=functools.partial(_numbers, scope)))}
  return [
      '/'.join(parts[path[:end + 1]] for end in range(len(path)))
      for path in paths
  ]


def names_before(graph: op_graph.OpGraph, names: Collection[str],
                 fingerprint: str) -> Sequence[str] | None:
  """Returns the names [N] of the ops in an earlier graph of the same model.

  Args:
    graph: N ops.
    names: Names of all ops of the earlier graph, in any order.
    fingerprint: Fingerprint of the earlier graph.

  Returns:
    None if the graphs differ in more than the numbers in names.
  """
  if fingerprint == graph.fingerprint:
    return graph.names
  before, forms = dict(zip(ranked(names), names)), ranked(graph.names)
  if before.keys() != set(forms):
    return None
  result = [before[form] for form in forms]
  is_same = graph.replace(names=result).fingerprint == fingerprint
  return result if is_same else None


def _pattern(scope: _Path) -> re.Pattern[str]:
  return _NUMBERS if scope else _INSIDE


def _numbers(scope: _Path, part: str) -> tuple[int, ...]:
  """Returns the numbers in the name of an op or scope in a scope."""
  found = ''.join(_pattern(scope).findall(part))
  return tuple(map(int, found.split('_')[1:]))
