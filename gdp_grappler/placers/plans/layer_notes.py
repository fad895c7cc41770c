"""Notes for the user about a map of layers: numbers of ops, and conflicts."""

from __future__ import annotations

from typing import Iterator, Sequence

import numpy as np

from gdp_grappler.cluster import layer_map
from gdp_grappler.graph import op_graph
from gdp_grappler.placers.plans import updates
from gdp_grappler.reports import units


def of(patterns: Sequence[str], matches: layer_map.Matches,
       by_layer: np.ndarray, index: np.ndarray,
       graph: op_graph.OpGraph) -> Iterator[str]:
  """Yields the notes; the first ones count each op of the graph once.

  Args:
    patterns: Patterns of the map.
    matches: Matches of the patterns for N ops.
    by_layer: bool [N], ops that a pattern other than '*' places.
    index: int, the device of each pattern.
    graph: N ops.
  """
  of_layers = np.bincount(graph.groups, by_layer, graph.num_groups) > 0
  serves = ~by_layer & (of_layers[graph.groups] | updates.serving(graph))
  rest = ~by_layer & ~serves
  by_default = rest & matches.only_default
  yield f'{units.count(by_layer.sum(), "op")} by layer'
  if serves.any():
    yield _counted(serves, 'variable, slot or update with its layer',
                   'variables, slots and updates with their layers')
  if by_default.any():
    yield f'{by_default.sum()} by "*"'
  if (rest & ~by_default).any():
    yield _counted(
        rest & ~by_default,
        'in no layer of the map, which is where TensorFlow puts it',
        'in no layer of the map, which are where TensorFlow puts them')
  if matches.idle:
    yield f'Warning: {without_ops(matches, graph)}'
  yield from (f'Warning: {said}' for said in matches.overruled)
  yield from _conflicts(patterns, np.where(by_layer, matches.patterns, -1),
                        index, graph)


def without_ops(matches: layer_map.Matches, graph: op_graph.OpGraph) -> str:
  """Names the patterns that match no op, of which there is one or more.

  Args:
    matches: Matches of the patterns.
    graph: The graph.
  """
  said = f'no op is in {" or in ".join(matches.idle)}'
  variable = next(
      (name for name in graph.variables if '/' in name and f'"{name}"' in said),
      '')
  if variable:
    said += (f'; "{variable}" is a variable, so give its layer, '
             f'"{variable.rpartition("/")[0]}"')
  return said


def _counted(ops: np.ndarray, of_one: str, of_more: str) -> str:
  """The number of ops bool [N], and a text on one op or on more ops."""
  count = ops.sum()
  return f'{count} {of_one if count == 1 else of_more}'


def _conflicts(patterns: Sequence[str], wanted: np.ndarray, index: np.ndarray,
               graph: op_graph.OpGraph) -> Iterator[str]:
  """A warning on variables that layers of different devices share.

  Args:
    patterns: Patterns of the map.
    wanted: int [N], the pattern of each op; -1 for none.
    index: int, the device of each pattern.
    graph: N ops.
  """
  holds = graph.holds_variables
  ops = np.flatnonzero((wanted >= 0) & holds[graph.groups])
  # One op of each pair of group and device.
  pairs, first = np.unique(np.stack([graph.groups[ops], index[wanted[ops]]]),
                           axis=1, return_index=True)
  groups, counts = np.unique(pairs[0], return_counts=True)
  shared = groups[counts > 1]
  if not shared.size:
    return
  some, other = wanted[ops[first[pairs[0] == shared[0]]]][:2]
  of_group = np.flatnonzero(graph.groups == shared[0])
  more = shared.size - 1
  others = f' and {units.count(more, "other variable")}' if more else ''
  yield (f'Warning: "{patterns[some]}" and "{patterns[other]}" share '
         f'"{graph.label(graph.holder(of_group))}"{others}: a shared variable '
         'gets the device to which the map gives most bytes of its ops')
