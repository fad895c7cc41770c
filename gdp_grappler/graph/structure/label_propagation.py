"""Passes labels of ops on to neighbours without a label."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph

# A round passes labels on to descendants, then to ancestors. A second round
# labels the descendants of the ancestors.
_ROUNDS = 2


class Inheritance:
  """Ancestors of the N ops of a graph.

  The parent of an op is the producer that comes last in topological order,
  because the op waits for this producer the longest. For example, an op of a
  decoder waits for the input of its time step, not for the encoder's outputs.
  Control edges count only if the op has no data edges.
  """

  def __init__(self, graph: op_graph.OpGraph, sources: np.ndarray) -> None:
    """Finds parents, and in the same way children.

    Args:
      graph: N ops.
      sources: bool [N], ops that are no parents, such as variables, because all
        time steps use them.
    """
    position = np.empty(graph.num_ops, np.int64)
    position[graph.topological_order] = np.arange(graph.num_ops)
    edges = graph.edges[~sources[graph.edges[:, 0]]]
    data = graph.edge_tensors[~sources[graph.edges[:, 0]]] >= 0
    # The last producer is the parent, the first consumer is the child.
    self._parents = _last(edges[:, 1], edges[:, 0], data, position[edges[:, 0]],
                          graph.num_ops)
    self._children = _last(edges[:, 0], edges[:, 1], data,
                           -position[edges[:, 1]], graph.num_ops)

  def filled(self, labels: np.ndarray) -> np.ndarray:
    """Gives ops without a label that of the nearest ancestor or descendant.

    Args:
      labels: int [N], -1 for none.

    Returns:
      int [N], -1 for ops that no label reaches along parents and children.
    """
    for _ in range(_ROUNDS):
      labels = self.inherited(labels)
      labels = _along(self._children, labels)
    return labels

  def inherited(self, labels: np.ndarray) -> np.ndarray:
    """Gives ops without a label that of the nearest ancestor."""
    return _along(self._parents, labels)


def _last(ops: np.ndarray, others: np.ndarray, data: np.ndarray,
          rank: np.ndarray, num_ops: int) -> np.ndarray:
  """Returns the neighbour with the highest rank of each op, int [N].

  Neighbours by data edges come before those by control edges.
  """
  result = np.arange(num_ops)
  order = np.lexsort((rank, data))
  result[ops[order]] = others[order]  # The last assignment stays.
  return result


def _along(pointers: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """Returns the first label on the way along pointers [N], int [N]."""
  at = np.where(labels < 0, pointers, np.arange(len(labels)))
  while True:
    further = at[at]
    if (further == at).all():
      return labels[at]
    at = further
