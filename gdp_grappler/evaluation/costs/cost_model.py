"""The interface of cost models: seconds and bytes of single ops."""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True, eq=False)
class Contention:
  """How devices slow each other down on a shared memory bus.

  Attributes:
    buses: int32 [D], number of the device's memory bus. Devices with the same
      number share the bus.
    shares: float64 [D], relative slowdown of an op of the device for each other
      compute unit of the bus that is busy at the op's start.
  """

  buses: np.ndarray
  shares: np.ndarray


def no_contention(cluster: cluster_lib.Cluster) -> Contention:
  """A contention in which every device has a bus of its own."""
  count = cluster.num_devices
  return Contention(np.arange(count, dtype=np.int32), np.zeros(count))


class CostModel(Protocol):
  """Seconds and bytes of single ops on the devices of any cluster."""

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """float64 [N, D], seconds that each op takes in one step on each device.

    These are the seconds of one execution, times the executions in a step.
    """

  def launches(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], kernels that each op launches on a GPU in one step.

    By default an op launches one kernel in each execution. Ops that launch no
    kernel may have any number.
    """
    return np.maximum(graph.executions, 1).astype(np.float64)

  def host_work(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], work of the host for each op beyond bare launches.

    The unit is `Device.dispatch_s` in one step. Only ops that launch a kernel
    have such work. By default nothing.
    """
    return np.zeros(graph.num_ops)

  def card_shares(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
    """float64 [N, D], share of the card that each op can use while it runs.

    A share is above 0 and at most 1, by default 1. The simulator calls this
    function only for clusters with cards that are cut into several devices.

    Args:
      graph: N ops.
      cluster: D devices.
      seconds: [N, D], `op_seconds`.
    """
    del graph, cluster
    return np.ones(seconds.shape)

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """int64 [N, D], temporary bytes that each op needs while it runs."""

  def contention(self, cluster: cluster_lib.Cluster) -> Contention:
    """Slowdown of devices by shared memory buses; by default none."""
    return no_contention(cluster)
