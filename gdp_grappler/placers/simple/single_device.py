"""Everything on one device, as far as it may be there."""

from __future__ import annotations

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib


class SingleDevicePlacer:
  """The best of the placements that use one device wherever it is allowed.

  Groups that may not be there go to the host, or to the first device they may
  have. A device on which everything fits beats one that overflows, of those the
  least.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    rows = of_each_kind(problem)
    best = problem.evaluator.price_groups(problem.graph, rows,
                                          ceiling_s=None).best()
    return placement_lib.from_groups(problem.graph, rows[best], problem.cluster)


def on_each(problem: placer_lib.Problem) -> np.ndarray:
  """int32 [D, G], everything on one device, as far as it may be there.

  What no placer of ours does worse than.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  return one_device.on_each(problem.cluster, problem.allowed)


def of_each_kind(problem: placer_lib.Problem) -> np.ndarray:
  """int32 [K, G], as `on_each`, once for devices of a kind.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  return one_device.of_each_kind(problem.cluster, problem.allowed,
                                 problem.op_seconds)


class OnlyDevicePlacer:
  """Everything on a device of the user's choice, wherever that is allowed.

  Groups that may not be there go to the host, or to the first device they may
  have. The evaluator is not asked.
  """

  def __init__(self, device: int | str) -> None:
    """From an index into the cluster, or a name such as 'GPU:0'."""
    self._device = device

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      ClusterError: the cluster has no such device.
    """
    device = self._index(problem.cluster)
    return placement_lib.from_groups(problem.graph,
                                     on_each(problem)[device], problem.cluster)

  def _index(self, cluster: cluster_lib.Cluster) -> int:
    if isinstance(self._device, str):
      return cluster.device_index(self._device)
    if not 0 <= self._device < cluster.num_devices:
      raise errors.ClusterError(
          f'There is no device {self._device} in cluster "{cluster.name}"; '
          f'give 0 to {cluster.num_devices - 1}.')
    return self._device


class DeviceTypePlacer:
  """Everything on the first device of a type, as far as it may be there."""

  def __init__(self, device_type: str) -> None:
    """Of `op_graph.DEVICE_TYPES`."""
    self._type = device_type

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the cluster has no such device, or the graph
        nothing for it.
    """
    first = first_device(problem.cluster, self._type)
    if first is None:
      raise errors.InfeasiblePlacementError(
          f'Cluster "{problem.cluster.name}" has no {self._type}. Take another '
          'cluster or another placer.')
    if len(problem.allowed) and not problem.allowed[:, first].any():
      raise errors.InfeasiblePlacementError(
          f'No op of graph "{problem.graph.name}" may be on a {self._type}. '
          'Take another placer.')
    return OnlyDevicePlacer(first).place(problem)


def first_device(cluster: cluster_lib.Cluster, device_type: str) -> int | None:
  """Index of the first device of a type; None if there is none."""
  return next((i for i, device in enumerate(cluster.devices)
               if device.type == device_type), None)
