"""Order of the inputs of Merges, which output the value of a live branch."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds


def live_first(graph: op_graph.OpGraph) -> np.ndarray:
  """Returns an order of the edges with live inputs first, int64 [E].

  An op that aliases hands on the buffer of its first data input. So the inputs
  of a Merge from a branch that runs come before those from other branches. A
  Switch runs, but one of its outputs is dead. So a Switch comes between them.
  """
  edges = graph.edges
  merged = graph.where_type(op_kinds.MERGES.__contains__)[edges[:, 1]]
  switches = graph.where_type(op_kinds.SWITCHES.__contains__)
  ranks = np.where(graph.executions > 0, switches, 2)[edges[:, 0]]
  ranks[~merged | (graph.edge_tensors < 0)] = 0
  return np.argsort(ranks, kind='stable')
