"""Which devices of a cluster each group of a graph may have."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph


def allowed_devices(graph: op_graph.OpGraph,
                    cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [G, D], the devices that suit every op of a group.

  A pin to a device that the cluster lacks means the host, unless the user
  asked for it.

  Raises:
    InfeasiblePlacementError: some group has no device, or a user's pin names
      a device that the cluster lacks.
  """
  by_op = demands(graph, cluster)
  by_group = np.stack([
      np.bincount(graph.groups, ~column, graph.num_groups) == 0
      for column in by_op.T
  ], axis=1)
  empty = np.flatnonzero(~by_group.any(axis=1))
  if empty.size:
    raise _infeasible(graph, cluster, by_op, empty[0])
  return by_group


def demands(graph: op_graph.OpGraph,
            cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N, D], the devices that suit each op by its kernels and its pin.

  What the rest of its group wants is left out.

  Raises:
    InfeasiblePlacementError: a user's pin names a device that the cluster
      lacks.
  """
  by_op = _kernels(graph, cluster)
  for pin, ops in graph.pinned_ops.items():
    device = _pinned_device(graph, pin, ops, cluster)
    by_op[ops] &= np.arange(cluster.num_devices) == device
  return by_op


def fallback_devices(allowed: np.ndarray, host: int) -> np.ndarray:
  """int [G], where groups go that cannot have what was wanted for them.

  That is the host, or the first device they may have.

  Args:
    allowed: bool [G, D] of `allowed_devices`.
    host: Index of the host.
  """
  return np.where(allowed[:, host], host, allowed.argmax(axis=1))


def made_legal(devices: np.ndarray, allowed: np.ndarray,
               host: int) -> np.ndarray:
  """int32 [K, G], on the fallback where a group may not be on its device.

  Args:
    devices: int [K, G], where groups are wanted.
    allowed: bool [G, D] of `allowed_devices`.
    host: Index of the host.
  """
  result = np.array(devices, np.int32)
  # Most groups may be anywhere.
  limited = np.flatnonzero(~allowed.all(axis=1))
  asked = result[:, limited]
  result[:, limited] = np.where(allowed[limited, asked], asked,
                                fallback_devices(allowed, host)[limited])
  return result


def _kernels(graph: op_graph.OpGraph,
             cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N, D]."""
  return graph.allowed_types[:, [
      op_graph.DEVICE_TYPES.index(d.type) for d in cluster.devices
  ]]


def _pinned_device(graph: op_graph.OpGraph, pin: str, ops: Sequence[int],
                   cluster: cluster_lib.Cluster) -> int:
  try:
    return cluster.device_index(pin)
  except errors.ClusterError as error:
    wanted = np.flatnonzero(graph.user_pins[ops])
    if wanted.size:
      raise errors.InfeasiblePlacementError(
          f'Op "{graph.label(ops[wanted[0]])}" is pinned to {pin}. {error} '
          'Pin it to one of these or remove the pin.') from error
    return cluster.host


def _infeasible(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                by_op: np.ndarray,
                group: int) -> errors.InfeasiblePlacementError:
  """Names one op for each demand of a group, the narrowest demands first."""
  ops = np.flatnonzero(graph.groups == group)
  demands, first = np.unique(by_op[ops], axis=0, return_index=True)
  lines = []
  for demand in np.argsort(demands.sum(axis=1), kind='stable')[:4]:
    op = ops[first[demand]]
    devices = [d for d, ok in zip(cluster.device_labels, by_op[op]) if ok]
    pinned = f', pinned to {graph.pins[op]}' if graph.pins[op] else ''
    lines.append(f'{graph.label(op)} ({graph.op_types[op]}{pinned}) may be on '
                 + (', '.join(devices) or 'none'))
  alone = [op for op in ops if not graph.pins[op] and not by_op[op].any()]
  if alone:
    op = alone[0]
    types = [
        kind for kind, ok in zip(op_graph.DEVICE_TYPES, graph.allowed_types[op])
        if ok
    ]
    return errors.InfeasiblePlacementError(
        f'Op "{graph.label(op)}" ({graph.op_types[op]}) may be on no device of '
        f'cluster "{cluster.name}", only on a {" or ".join(types) or "none"}. '
        'Give a cluster that has one.')
  return errors.InfeasiblePlacementError(
      f'No device of cluster "{cluster.name}" suits all ops of a group that '
      f'must stay together: {"; ".join(lines)}. Remove a pin, or give a '
      'cluster with a device that suits all.')
