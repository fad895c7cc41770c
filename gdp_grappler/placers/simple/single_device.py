"""All groups on one device, if they may be there."""

from __future__ import annotations

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib


class SingleDevicePlacer:
  """The best by price of the placements of all groups on one device.

  A group that may not be on the device gets the host, or else the first device
  it may have. A placement that fits into the memories is better than one that
  does not, and a smaller overflow is better.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return best_of_one(problem)


class DeviceTypePlacer:
  """All groups on the first device of a type, if they may be there."""

  def __init__(self, device_type: str) -> None:
    """Sets the type.

    Args:
      device_type: One of `op_graph.DEVICE_TYPES`.
    """
    self._type = device_type

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the cluster has no such device, or no op may be
        on it.
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
    return all_on(problem, first)


def best_of_one(problem: placer_lib.Problem,
                alone: bool = False) -> placement_lib.Placement:
  """The best by price of the placements of all groups on one device.

  Args:
    problem: The graph and the cluster.
    alone: See `one_device.of_each_kind`.
  """
  rows = one_device.of_each_kind(problem.cluster, problem.allowed,
                                 problem.op_seconds, alone=alone)
  best = problem.evaluator.price_groups(problem.graph, rows,
                                        ceiling_s=None).best()
  return placement_lib.from_groups(problem.graph, rows[best], problem.cluster)


def all_on(problem: placer_lib.Problem, device: int) -> placement_lib.Placement:
  """All groups on a device.

  A group that may not be there gets the host, or else the first device it may
  have.

  Args:
    problem: The graph and the cluster.
    device: Index of the device in the cluster.
  """
  rows = one_device.on_each(problem.cluster, problem.allowed)
  return placement_lib.from_groups(problem.graph, rows[device], problem.cluster)


def first_device(cluster: cluster_lib.Cluster, device_type: str) -> int | None:
  """Index of the first device of a type; None if there is none.

  Args:
    cluster: The devices.
    device_type: One of `op_graph.DEVICE_TYPES`.
  """
  return next((i for i, device in enumerate(cluster.devices)
               if device.type == device_type), None)
