"""Priorities of ops by the critical path.

Priorities are the upward ranks of HEFT (Topcuoglu, Hariri and Wu, "Performance-
effective and low-complexity task scheduling for heterogeneous computing", IEEE
TPDS 13(3), 2002, equation 4), with the times on the devices of a given
placement in place of means over all devices:

    rank(op) = seconds(op) + max over consumers c of (transfer(op, c) + rank(c))
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph


def with_critical_path_order(
    graph: op_graph.OpGraph, placement: placement_lib.Placement,
    evaluator: evaluator_lib.Evaluator) -> placement_lib.Placement:
  """The placement with upward ranks as its priorities.

  Args:
    graph: N ops.
    placement: Placement of these ops. Its priorities, if any, are replaced.
    evaluator: Evaluator whose seconds and cluster give the ranks.

  Raises:
    ValueError: the placement does not give each op a device of the cluster, or
      its cluster has another number of devices.
    InvalidGraphError: the edges of the graph form a cycle.
  """
  cluster = evaluator.cluster
  if cluster.num_devices != placement.cluster.num_devices:
    raise ValueError(
        f'The placement is on {placement.cluster.num_devices} devices, cluster '
        f'"{cluster.name}" has {cluster.num_devices}.')
  return dataclasses.replace(
      placement, priorities=upward_ranks(graph, placement.devices, cluster,
                                         evaluator.op_seconds(graph)))


def upward_ranks(graph: op_graph.OpGraph, devices: np.ndarray,
                 cluster: cluster_lib.Cluster,
                 op_seconds: np.ndarray) -> np.ndarray:
  """float64 [N], seconds from the start of an op to the end of the step.

  The ranks assume that devices and links are idle.

  Args:
    graph: N ops.
    devices: int [N], indices into the cluster's devices.
    cluster: D devices.
    op_seconds: float64 [N, D].

  Raises:
    ValueError: `devices` does not give each op a device of the cluster.
    InvalidGraphError: the edges of the graph form a cycle.
  """
  devices = np.asarray(devices)
  if devices.shape != (graph.num_ops,) or (
      (devices < 0) | (devices >= cluster.num_devices)).any():
    raise ValueError(f'Graph "{graph.name}" needs {graph.num_ops} devices out '
                     f'of 0 .. {cluster.num_devices - 1}.')
  devices = op_details.working_devices(graph, cluster, devices)
  seconds = op_seconds[np.arange(graph.num_ops), devices]
  step_s = seconds[graph.edges[:, 0]] + _transfer_s(graph, devices, cluster)
  return native_graph.ranks(graph.edges, graph.topological_order, step_s,
                            seconds)


def _transfer_s(graph: op_graph.OpGraph, devices: np.ndarray,
                cluster: cluster_lib.Cluster) -> np.ndarray:
  """float64 [E], seconds from the end of the producer to the arrival.

  Links are assumed to be idle. The result is 0 for edges without a transfer.
  """
  latency_s, bytes_per_s = cluster.link_arrays[:2]
  source, target = op_details.tensor_places(graph, cluster, devices)
  size = graph.edge_bytes * (graph.executions[graph.edges[:, 0]] > 0)
  copy_s = np.array([d.copy_s for d in cluster.devices])
  s_per_byte = np.array([
      1 / d.copy_bytes_per_s if d.copy_bytes_per_s else 0.
      for d in cluster.devices
  ])
  copies_s = sum(
      copy_s[end] + size * s_per_byte[end] for end in (source, target))
  # Synchronous devices have 0 for both times.
  callback_s = np.array([d.callback_s for d in cluster.devices])
  poll_s = np.array([d.poll_s for d in cluster.devices])
  runs_ahead = np.array([d.asynchronous for d in cluster.devices])
  manager = np.where(runs_ahead[source], source, target)
  copied_s = latency_s[source, target] + size / bytes_per_s[source, target]
  # A longer copy has not ended when the event manager looks for the first time.
  first_look_s = 2 * latency_s[source, target]
  heard_s = callback_s[manager] + poll_s[manager] * (copied_s > first_look_s)
  transfer_s = copied_s + copies_s + heard_s
  return np.where(source == target, 0., transfer_s)
