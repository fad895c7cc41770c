"""Several orders for a placement, because no single order is always best."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import depth_first
from gdp_grappler.evaluation.ordering import layer_step_order
from gdp_grappler.graph import op_graph


def of(graph: op_graph.OpGraph, devices: np.ndarray,
       cluster: cluster_lib.Cluster, op_seconds: np.ndarray) -> np.ndarray:
  """float64 [K, N], priorities of the orders that may pay for a placement.

  The first order is by the critical path. The second is depth first: one result
  after the other. If the graph has time steps, the third order keeps the time
  steps of layers together.

  Args:
    graph: N ops.
    devices: int [N], indices into the cluster's devices.
    cluster: D devices.
    op_seconds: float64 [N, D].

  Raises:
    ValueError: `devices` does not give each op a device of the cluster.
    InvalidGraphError: the edges of the graph form a cycle.
  """
  ranks = critical_path_order.upward_ranks(graph, devices, cluster, op_seconds)
  by_steps = layer_step_order.priorities(graph, ranks)
  return np.stack([
      ranks,
      depth_first.priorities(graph), *([] if by_steps is None else [by_steps])
  ])
