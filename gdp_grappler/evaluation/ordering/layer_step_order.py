"""Priorities by the critical path that keep time steps of layers together.

By upward rank each op of a layer's time step has a priority of its own. So an
op of another layer interrupts the time step as soon as its rank is a little
higher. This order avoids that by nodes: a node has ops of one layer and time
step that can run together without delaying others (`graph.contraction`). All
ops of a node get the lowest rank of the node. So a layer finishes a time step
that it has begun.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import contraction
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import coordinates

_COORDINATES = 'layer', 'segment'
# Largest difference of priorities in a node, as a share of the longest path.
_WITHIN = 1e-9


def priorities(graph: op_graph.OpGraph, ranks: np.ndarray) -> np.ndarray | None:
  """float64 [N], priorities by the lowest rank of a node, then by rank.

  Args:
    graph: N ops.
    ranks: float64 [N], result of `critical_path_order.upward_ranks`.

  Returns:
    The priorities; None if the graph has no time steps, or if each node is a
    single op.
  """
  nodes = _nodes(graph)
  if nodes is None:
    return None
  lowest = np.full(int(nodes.max()) + 1, np.inf)
  np.minimum.at(lowest, nodes, ranks)
  return lowest[nodes] + _WITHIN * ranks


@op_graph.once_per_graph
def _nodes(graph: op_graph.OpGraph) -> np.ndarray | None:
  """int [N], node of each op; None if `priorities` returns None."""
  known = coordinates.of(graph)
  if not {*_COORDINATES} <= {*known.readable}:
    return None
  tiles = unique_rows.distinct([known[name] for name in _COORDINATES])[1]
  nodes = contraction.nodes(graph, tiles)
  return nodes if int(nodes.max(initial=-1)) + 1 < graph.num_ops else None
