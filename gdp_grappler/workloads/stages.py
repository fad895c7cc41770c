"""Finds the stage of each op of a workload."""

from __future__ import annotations

import re

import numpy as np

from gdp_grappler.graph import op_graph

_STAGE = re.compile(r'stage(\d+)')


def of(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns the stage of each op, int [N].

  The stage is the first 'stage<k>' in the op's name (`by_name`). Then all ops
  of a group get one stage, so that weights, optimizer slots and updates stay
  together: the stage of the group's largest variable or, without one, of most
  of its ops.
  """
  return _by_group(graph, by_name(graph, _STAGE))


def by_name(graph: op_graph.OpGraph, pattern: re.Pattern[str]) -> np.ndarray:
  """Returns the stage of each op by its name, int [N].

  An op without a stage in its name gets that of the first op that it feeds, or
  else of the first op that feeds it, or else 0.

  Args:
    graph: N ops.
    pattern: Pattern of a stage in a name. Its first group is the number.
  """
  found = map(pattern.search, graph.names)
  result = [int(match[1]) if match else -1 for match in found]
  if min(result, default=0) < 0:
    order = graph.topological_order.tolist()
    _inherit(result, order[::-1], graph.successors)
    _inherit(result, order, _producers(graph))
  return np.maximum(np.array(result, int), 0)


def _inherit(stages: list[int], order: list[int],
             neighbours: tuple[list[int], list[int]]) -> None:
  """Gives ops without a stage that of their first neighbour with a stage."""
  ends, starts = neighbours
  for op in order:
    if stages[op] < 0:
      stages[op] = next(
          (stages[end]
           for end in ends[starts[op]:starts[op + 1]] if stages[end] >= 0), -1)


def _producers(graph: op_graph.OpGraph) -> tuple[list[int], list[int]]:
  """Returns producers sorted by consumer [E], and each op's start [N + 1]."""
  order = np.argsort(graph.edges[:, 1], kind='stable')
  counts = np.bincount(graph.edges[:, 1], minlength=graph.num_ops)
  starts = np.concatenate([[0], np.cumsum(counts)])
  return graph.edges[order, 0].tolist(), starts.tolist()


def _by_group(graph: op_graph.OpGraph, stages: np.ndarray) -> np.ndarray:
  """Gives each group one stage, int [N]."""
  if not graph.num_ops:
    return stages
  num_stages = int(stages.max()) + 1
  keys = graph.groups.astype(np.int64) * num_stages + stages
  pairs, first, counts = np.unique(keys, return_index=True, return_counts=True)
  largest = np.zeros(len(pairs), np.int64)
  np.maximum.at(largest, np.searchsorted(pairs, keys), graph.param_bytes)
  # The last pair of each group wins: the one with the largest variable, then
  # with the most ops, then with the first op.
  ranked = np.lexsort((-first, counts, largest, pairs // num_stages))
  of_groups = np.zeros(graph.num_groups, int)
  of_groups[(pairs // num_stages)[ranked]] = (pairs % num_stages)[ranked]
  return of_groups[graph.groups]
