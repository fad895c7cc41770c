"""Costs that were computed elsewhere."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True, eq=False)
class FixedCostModel(cost_model.CostModel):
  """A cost model of one graph on one cluster.

  Attributes:
    seconds: float64 [N, D], seconds of each op on each device in one step.
    contended: How devices slow each other down; None means not at all.
    kernels: float64 [N], result of `launches`; None means one per execution.
    work: float64 [N], result of `host_work`; None means 0.
    shares: float64 [N, D], result of `card_shares`; None means 1.
  """

  seconds: np.ndarray
  contended: cost_model.Contention | None = None
  kernels: np.ndarray | None = None
  work: np.ndarray | None = None
  shares: np.ndarray | None = None

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """See `CostModel`."""
    del graph, cluster
    return self.seconds

  def launches(self, graph: op_graph.OpGraph) -> np.ndarray:
    """See `CostModel`."""
    return super().launches(graph) if self.kernels is None else self.kernels

  def host_work(self, graph: op_graph.OpGraph) -> np.ndarray:
    """See `CostModel`."""
    return super().host_work(graph) if self.work is None else self.work

  def card_shares(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
    """See `CostModel`."""
    if self.shares is None:
      return super().card_shares(graph, cluster, seconds)
    return self.shares

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """See `CostModel`; 0, because workspace is not known."""
    return np.zeros((graph.num_ops, cluster.num_devices), np.int64)

  def contention(self, cluster: cluster_lib.Cluster) -> cost_model.Contention:
    """See `CostModel`."""
    return self.contended or cost_model.no_contention(cluster)
