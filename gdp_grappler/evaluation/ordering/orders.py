"""Several orders for a placement, because none of them is always the best."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import depth_first
from gdp_grappler.evaluation.ordering import layer_step_order
from gdp_grappler.graph import op_graph

# The largest number of orders.
COUNT = 3


def of(graph: op_graph.OpGraph, devices: np.ndarray,
       cluster: cluster_lib.Cluster, op_seconds: np.ndarray) -> np.ndarray:
  """float64 [K, N], priorities: the critical path first, then `others`.

  Args:
    graph: N ops.
    devices: int [N], indices into the cluster's devices.
    cluster: D devices.
    op_seconds: float64 [N, D].

  Raises:
    ValueError: not a device of the cluster per op.
    InvalidGraphError: the edges of the graph form a cycle.
  """
  ranks = critical_path_order.upward_ranks(graph, devices, cluster, op_seconds)
  return np.concatenate([ranks[None], others(graph, ranks)])


def others(graph: op_graph.OpGraph, ranks: np.ndarray) -> np.ndarray:
  """float64 [K, N], one result after the other; and one time step, if any.

  Args:
    graph: N ops.
    ranks: float64 [N], of `critical_path_order.upward_ranks`.
  """
  by_steps = layer_step_order.priorities(graph, ranks)
  return np.stack([
      depth_first.priorities(graph), *([] if by_steps is None else [by_steps])
  ])
