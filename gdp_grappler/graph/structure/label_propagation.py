"""What ops without a label take over from their neighbours."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph

# Two are enough for all that hangs on anything with a label.
_ROUNDS = 2


class Inheritance:
  """Lines of descent of the N ops of a graph.

  An op descends from the producer that comes last in topological order: what it
  waited for, such as this time step's input and not the encoder's outputs of
  all time steps. Control edges count where there are no others.
  """

  def __init__(self, graph: op_graph.OpGraph, sources: np.ndarray) -> None:
    """Prepares.

    Args:
      graph: N ops.
      sources: bool [N], ops from which nobody descends, such as variables:
        they are there all the time.
    """
    position = np.empty(graph.num_ops, np.int64)
    position[graph.topological_order] = np.arange(graph.num_ops)
    edges = graph.edges[~sources[graph.edges[:, 0]]]
    data = graph.edge_tensors[~sources[graph.edges[:, 0]]] >= 0
    # Last in the order of producers; first in that of consumers.
    self._parents = _last(edges[:, 1], edges[:, 0], data, position[edges[:, 0]],
                          graph.num_ops)
    self._children = _last(edges[:, 0], edges[:, 1], data,
                           -position[edges[:, 1]], graph.num_ops)

  def filled(self, labels: np.ndarray) -> np.ndarray:
    """Labels of ops and, where they have none, of the next that has one.

    Of ancestors first, then of descendants.

    Args:
      labels: int [N], -1 for none.

    Returns:
      int [N], -1 where neither ancestors nor descendants have any.
    """
    for _ in range(_ROUNDS):
      labels = self.inherited(labels)
      labels = _along(self._children, labels)
    return labels

  def inherited(self, labels: np.ndarray) -> np.ndarray:
    """The same, of ancestors alone."""
    return _along(self._parents, labels)


def _last(ops: np.ndarray, others: np.ndarray, data: np.ndarray,
          rank: np.ndarray, num_ops: int) -> np.ndarray:
  """int [N], of the others that an op has an edge with the highest in rank."""
  result = np.arange(num_ops)
  order = np.lexsort((rank, data))
  result[ops[order]] = others[order]  # The last assignment stays.
  return result


def _along(pointers: np.ndarray, labels: np.ndarray) -> np.ndarray:
  """int [N], the first label on the way along pointers [N]."""
  at = np.where(labels < 0, pointers, np.arange(len(labels)))
  while True:
    further = at[at]
    if (further == at).all():
      return labels[at]
    at = further
