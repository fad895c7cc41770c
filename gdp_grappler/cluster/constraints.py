"""The devices of a cluster that each group of a graph may have."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import choices
from gdp_grappler.graph import op_graph


def allowed_devices(graph: op_graph.OpGraph,
                    cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [G, D], the devices that suit every op of a group.

  If the user did not set a pin, and the cluster lacks its device, the op may
  have the first device of the same type, if possible of the same task. Unless
  the graph `may_round`, an op stays on types of devices on which it computes
  the same numbers as without a placement. This rule does not hold for a group
  for which it leaves no device.

  Raises:
    InfeasiblePlacementError: some group has no device, or a user's pin names
      a device that the cluster lacks.
  """
  by_op = _possible(graph, cluster)
  by_group = _all_of_groups(graph, by_op)
  empty = np.flatnonzero(~by_group.any(axis=1))
  if empty.size:
    raise _infeasible(graph, cluster, by_op, empty[0])
  same = _same_numbers(graph, cluster)
  if same is None:
    return by_group
  ruled = by_group & _all_of_groups(graph, same)
  return np.where(ruled.any(axis=1, keepdims=True), ruled, by_group)


def suitable_devices(graph: op_graph.OpGraph,
                     cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N, D], the devices that suit each op.

  The function looks at the op's own kernels, its own pin and the rounding of
  its own numbers, and ignores the demands of other ops of the group.

  Raises:
    InfeasiblePlacementError: a user's pin names a device that the cluster
      lacks.
  """
  by_op = _possible(graph, cluster)
  same = _same_numbers(graph, cluster)
  if same is None:
    return by_op
  # As in `allowed_devices`, the rule for numbers holds for groups to which it
  # leaves a device.
  ruled = np.asarray(_all_of_groups(graph, by_op & same).any(axis=1))
  return by_op & (same | ~ruled[graph.groups][:, None])


def changes_numbers(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                    devices: np.ndarray) -> np.ndarray:
  """bool [N], ops that compute other numbers than without a placement.

  There are none if all devices are of one type.

  Args:
    graph: N ops.
    cluster: The devices.
    devices: int [N], where the ops are.
  """
  types = _types(cluster)
  if (types == types[0]).all():
    return np.zeros(graph.num_ops, bool)
  return ~graph.same_numbers[np.arange(graph.num_ops), types[devices]]


def changes_numbers_on(graph: op_graph.OpGraph,
                       cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N, D], ops that would compute other numbers on each device.

  Args:
    graph: N ops.
    cluster: The D devices.
  """
  kernels = graph.allowed_types[:, _types(cluster)]
  return kernels & np.stack([
      changes_numbers(graph, cluster, np.full(graph.num_ops, device))
      for device in range(cluster.num_devices)
  ], axis=1)


def advice_on_memory(graph: op_graph.OpGraph,
                     cluster: cluster_lib.Cluster) -> str:
  """Returns advice for a graph that does not fit; '' if there is none.

  The advice says how ops or variables may use more memories.

  Args:
    graph: The graph. A placement of it exceeds a memory.
    cluster: The devices.
  """
  lifted = allowed_devices(graph.replace(may_round=True), cluster)
  if (lifted == allowed_devices(graph, cluster)).all():
    return ''
  return ('float arithmetic of GPUs stays there, because CPUs round it '
          'differently; may_round lets it move to other memory')


def _possible(graph: op_graph.OpGraph,
              cluster: cluster_lib.Cluster) -> np.ndarray:
  """bool [N, D], the devices that suit each op by its kernels and its pin."""
  by_op = graph.allowed_types[:, _types(cluster)]
  for pin, ops in graph.pinned_ops.items():
    device = _pinned_device(graph, pin, ops, cluster)
    by_op[ops] &= np.arange(cluster.num_devices) == device
  return by_op


def fallback_devices(allowed: np.ndarray, host: int) -> np.ndarray:
  """int [G], devices of groups that may not have the wanted device.

  A group gets the host, or else the first device that it may have.

  Args:
    allowed: bool [G, D] of `allowed_devices`.
    host: Index of the host.
  """
  return np.where(allowed[:, host], host, allowed.argmax(axis=1))


def made_legal(devices: np.ndarray, allowed: np.ndarray,
               host: int) -> np.ndarray:
  """int32 [K, G], placements with the fallback for each forbidden device.

  Args:
    devices: int [K, G], wanted devices of groups.
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


def _types(cluster: cluster_lib.Cluster) -> np.ndarray:
  """int [D], index of each device's type in `op_graph.DEVICE_TYPES`."""
  return np.array(
      [op_graph.DEVICE_TYPES.index(d.type) for d in cluster.devices])


def _all_of_groups(graph: op_graph.OpGraph, by_op: np.ndarray) -> np.ndarray:
  """bool [G, D], devices that suit all ops of a group, from bool [N, D]."""
  return choices.of_all(by_op, graph.groups, graph.num_groups)


def _same_numbers(graph: op_graph.OpGraph,
                  cluster: cluster_lib.Cluster) -> np.ndarray | None:
  """bool [N, D], devices on which an op's numbers stay; None means all."""
  types = _types(cluster)
  if graph.may_round or (types == types[0]).all():
    return None
  same = graph.same_numbers[:, types]
  return None if same.all() else same


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
    return _instead(pin, cluster)


def _instead(pin: str, cluster: cluster_lib.Cluster) -> int:
  """The first device of a pin's type: if possible, of the pin's task."""
  indices: Sequence[int] = cluster.accelerators
  if cluster_lib.device_type(pin) != 'GPU':
    indices = [i for i, d in enumerate(cluster.devices) if d.type == 'CPU']
  try:
    task = cluster_lib.task(cluster_lib.canonical_device(pin))
  except errors.ClusterError:
    task = ''  # The pin names no single device.
  own = [
      i for i in indices if cluster_lib.task(cluster.device_names[i]) == task
  ]
  return (own or indices)[0]


def _infeasible(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                by_op: np.ndarray,
                group: int) -> errors.InfeasiblePlacementError:
  """The error for a group that no device suits, with ops and their devices."""
  ops = np.flatnonzero(graph.groups == group)
  demands, first = np.unique(by_op[ops], axis=0, return_index=True)
  lines = []
  for demand in np.argsort(demands.sum(axis=1), kind='stable')[:4]:
    op = ops[first[demand]]
    devices = [d for d, ok in zip(cluster.device_labels, by_op[op]) if ok]
    pinned = f', pinned to {graph.pins[op]}' if graph.pins[op] else ''
    lines.append(f'{graph.label(op)} ({graph.op_types[op]}{pinned}) may be on '
                 + (', '.join(devices) or 'none'))
  alone = ops[~graph.allowed_types[np.ix_(ops, _types(cluster))].any(axis=1)]
  if alone.size:
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
      f'must stay together: {"; ".join(lines)}. '
      + ('Remove a pin, or give' if any(
          graph.pins[op] for op in ops) else 'Give')
      + ' a cluster with a device that suits all.')
