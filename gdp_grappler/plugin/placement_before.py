"""The placement of a graph before the plugin changes it."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.simple import single_device
from gdp_grappler.plugin import asked_devices

_GPU = '/device:GPU:'


def placement(problem: placer_lib.Problem,
              source: source_graph.SourceGraph) -> placement_lib.Placement:
  """Returns the placement that TensorFlow chose, with each loop on one device.

  If the cluster has GPUs and this program has none, TensorFlow would choose the
  first GPU. Ops on a device that the cluster lacks go to the host, or to their
  first legal device. TensorFlow divides a loop whose variables have moved. In
  the result, such a loop is on the device of its variables.

  Args:
    problem: The graph, N ops, and the cluster.
    source: The graph that was read.
  """
  graph, cluster = problem.graph, problem.cluster
  gpu = single_device.first_device(cluster, 'GPU')
  if gpu is not None and not any(_GPU in device for device in source.devices):
    return single_device.all_on(problem, gpu)
  homes = _homes(graph)
  index = {
      name:
          cluster.device_index(name) if asked_devices.has(cluster, name) else -1
      for name in set(homes)
  }
  devices = np.array([index[name] for name in homes])
  instead = constraints.fallback_devices(problem.allowed, cluster.host)
  return placement_lib.Placement(
      np.where(devices < 0, instead[graph.groups], devices), cluster)


def legal(problem: placer_lib.Problem,
          before: placement_lib.Placement) -> placement_lib.Placement:
  """Returns a placement in which only ops move that may not stay.

  Args:
    problem: The graph and the cluster.
    before: Result of `placement`.
  """
  groups, cluster = problem.graph.groups, problem.cluster
  devices = np.zeros(len(problem.allowed), int)
  devices[groups] = before.devices
  devices = constraints.made_legal(devices[None], problem.allowed,
                                   cluster.host)[0]
  return placement_lib.Placement(devices[groups], cluster)


def num_rejoined(graph: op_graph.OpGraph,
                 before: placement_lib.Placement) -> int:
  """Returns the number of ops whose loop goes to the device of its variables.

  Args:
    graph: N ops.
    before: Result of `placement`.
  """
  return sum(own != home and cluster_lib.canonical_device(home) == placed
             for own, home, placed in zip(graph.devices, _homes(graph),
                                          before.device_strings()))


@op_graph.once_per_graph
def _homes(graph: op_graph.OpGraph) -> tuple[str, ...]:
  """Returns devices of ops [N]; a divided loop is where its variables are.

  Ops of a group have different devices only if the group is such a loop.
  """
  result = list(graph.devices)
  devices: dict[int, set[str]] = {}
  for group, device in zip(graph.groups.tolist(), result):
    devices.setdefault(group, set()).add(device)
  divided = [group for group, own in devices.items() if len(own) > 1]
  for group in divided:
    members = np.flatnonzero(graph.groups == group)
    holders = members[graph.param_bytes[members] > 0]
    if holders.size:
      for op in members.tolist():
        result[op] = graph.devices[int(holders[0])]
  return tuple(result)
