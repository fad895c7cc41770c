"""Embeddings of ops and of groups of ops (HDP, section 2.1).

An op is described by its type, the sizes and the number of its outputs, and its
neighbours. The Grouper decides about co-location groups, here called *units*,
so the embeddings of a unit's ops are added. Sizes are bytes instead of shapes,
because an `OpGraph` has no shapes. Counts and sizes are logarithms, because
they span nine orders of magnitude.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph

# About the logarithm of the largest tensors. Sizes over it are of order 1.
_LOG_LARGE = 20.


class GraphEmbedder:
  """Embeddings of one graph of G units.

  Attributes:
    units: float32 [G, F], input of the Grouper: counts of op types, sizes of
      the outputs by their number, count of outputs, position in topological
      order, and positions of neighbours, those with the heaviest edges first. A
      neighbour's position is positive for a consumer and negative for a
      producer; 0 stands for a missing neighbour.
  """

  def __init__(self, graph: op_graph.OpGraph, max_outputs: int,
               adjacency_size: int, place_scale: float) -> None:
    """Initializes a GraphEmbedder.

    Args:
      graph: Graph of N ops in G units.
      max_outputs: Number of outputs that are distinguished; the last one stands
        for all further ones.
      adjacency_size: Number of neighbours per unit.
      place_scale: Largest position in topological order.
    """
    self._op_types, self._vocabulary = _type_numbers(graph)
    self._graph = graph
    self._outputs = _outputs(graph, max_outputs)
    place = place_scale * _places(graph)
    self.units = np.concatenate([
        self._contents(graph.groups, graph.num_groups), place[:, None],
        _neighbours(graph, place, adjacency_size)
    ], axis=1).astype(np.float32)

  def groups(self, grouping: np.ndarray, num_groups: int) -> np.ndarray:
    """Returns the input of the Placer, float32 [K, W], all from 0 to 1.

    The columns are: counts of op types, sizes and count of outputs, each
    relative to the group with the largest value; then, for each group, 1 if
    there are edges to it; then, for each group, 1 if there are edges from it.

    Args:
      grouping: int [G], group of each unit.
      num_groups: Number K of groups.
    """
    of_ops = grouping[self._graph.groups]
    source, target = of_ops[self._graph.edges].T
    adjacency = np.zeros((num_groups, num_groups), np.float32)
    adjacency[source, target] = 1.
    np.fill_diagonal(adjacency, 0.)
    contents = self._contents(of_ops, num_groups)
    contents /= np.maximum(contents.max(axis=0, initial=0.), 1e-9)
    return np.concatenate([contents, adjacency, adjacency.T],
                          axis=1).astype(np.float32)

  def _contents(self, sets: np.ndarray, count: int) -> np.ndarray:
    """Returns logarithms of sums over sets of ops.

    The shape is [count, types + max_outputs + 1].
    """
    width = self._vocabulary
    types = np.bincount(sets * width + self._op_types,
                        minlength=count * width).reshape(count, width)
    outputs = np.log1p(
        np.stack(
            [np.bincount(sets, column, count) for column in self._outputs.T],
            axis=1))
    outputs[:, :-1] /= _LOG_LARGE
    return np.concatenate([np.log1p(types), outputs], axis=1)


def _type_numbers(graph: op_graph.OpGraph) -> tuple[np.ndarray, int]:
  types, numbers = np.unique(np.array(graph.op_types, str), return_inverse=True)
  return numbers.reshape(-1).astype(np.int64), len(types)


def _outputs(graph: op_graph.OpGraph, max_outputs: int) -> np.ndarray:
  """Returns bytes by output, and output counts, [N, max_outputs + 1]."""
  order = np.argsort(graph.tensor_ops, kind='stable')
  ops = graph.tensor_ops[order]
  starts = np.searchsorted(ops, ops)
  column = np.minimum(np.arange(len(ops)) - starts, max_outputs - 1)
  result = np.zeros((graph.num_ops, max_outputs + 1))
  np.add.at(result, (ops, column), graph.tensor_bytes[order])
  result[:, -1] = np.bincount(ops, minlength=graph.num_ops)
  return result


def _places(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns ranks of the units' first ops, float64 [G] in (0, 1]."""
  at = np.empty(graph.num_ops, np.int64)
  at[graph.topological_order] = np.arange(graph.num_ops)
  first = np.full(graph.num_groups, graph.num_ops)
  np.minimum.at(first, graph.groups, at)
  place = np.empty(graph.num_groups)
  place[np.argsort(first)] = np.arange(1, graph.num_groups + 1)
  return place / max(graph.num_groups, 1)


def _neighbours(graph: op_graph.OpGraph, place: np.ndarray,
                size: int) -> np.ndarray:
  """Returns signed positions of the heaviest neighbours, [G, size]."""
  pairs = graph.groups[graph.edges].astype(np.int64)
  crossing = pairs[:, 0] != pairs[:, 1]
  keys, where = np.unique(
      pairs[crossing, 0] * graph.num_groups + pairs[crossing, 1],
      return_inverse=True)
  weight = np.bincount(where, graph.edge_bytes[crossing], len(keys))
  source, target = np.divmod(keys, max(graph.num_groups, 1))
  unit = np.concatenate([source, target])
  value = np.concatenate([place[target], -place[source]])
  order = np.lexsort([-np.concatenate([weight, weight]), unit])
  unit, value = unit[order], value[order]
  rank = np.arange(len(unit)) - np.searchsorted(unit, unit)
  result = np.zeros((graph.num_groups, size))
  kept = rank < size
  result[unit[kept], rank[kept]] = value[kept]
  return result
