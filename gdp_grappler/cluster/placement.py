"""A placement, which gives each op a device, and its violations of rules."""

from __future__ import annotations

import collections
import dataclasses
from typing import Iterator

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class Violation:
  """A rule of a graph or a cluster that a placement breaks.

  Attributes:
    kind: Kind of the rule. 'device': the op may not have its device. 'numbers':
      the op could run there, but would round differently. 'colocation': ops of
      a group are on different devices. 'memory': the placement exceeds a
      memory. 'shape': there is not one device of the cluster per op.
      'priority': there is not one finite priority per op. 'run': the step
      failed when it was run.
    message: The op or device, and the reason.
  """

  kind: str
  message: str


@dataclasses.dataclass(frozen=True, eq=False)
class Placement:
  """Devices of the N ops of a graph.

  Attributes:
    devices: int32 [N], indices into `cluster.devices`; read-only.
    cluster: Cluster of the devices.
    priorities: float64 [N], read-only. Ready ops of a device start in order of
      decreasing priority. None means first in, first out, as in TensorFlow.
  """

  devices: np.ndarray
  cluster: cluster_lib.Cluster
  priorities: np.ndarray | None = None

  def __post_init__(self) -> None:
    for field, dtype in (('devices', np.int32), ('priorities', np.float64)):
      if getattr(self, field) is not None:
        array = np.array(getattr(self, field), dtype)
        array.setflags(write=False)
        object.__setattr__(self, field, array)

  def device_strings(self) -> list[str]:
    """[N], full device names."""
    names = self.cluster.device_names
    return [names[device] for device in self.devices.tolist()]

  def counts(self) -> dict[str, int]:
    """Number of ops per device, such as {'GPU:0': 12}, in the cluster's order.

    Names have hosts, 'worker/1/GPU:0', if the cluster has several.
    """
    counts = np.bincount(self.devices, minlength=self.cluster.num_devices)
    return dict(zip(self.cluster.device_labels, counts.tolist()))

  def cut(self, graph: op_graph.OpGraph) -> tuple[int, int]:
    """Number of tensors that are sent between devices, and their bytes.

    A tensor counts once per device that receives it.
    """
    sent = self.sent(graph)[0]
    return len(sent), int(graph.tensor_bytes[sent].sum())

  def sent(self, graph: op_graph.OpGraph,
           edges: np.ndarray | bool = True) -> np.ndarray:
    """int [2, S], each tensor that is sent, and the device that receives it.

    Args:
      graph: The graph.
      edges: bool [E], edges that count; True for all.
    """
    data = (graph.edge_tensors >= 0) & edges
    target = self.devices[graph.edges[data, 1]]
    crossing = self.devices[graph.edges[data, 0]] != target
    return np.unique(
        np.stack([graph.edge_tensors[data][crossing], target[crossing]]),
        axis=1)

  def violations(self, graph: op_graph.OpGraph) -> tuple[Violation, ...]:
    """All violations of the graph's rules; evaluators check memory.

    Raises:
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    if self.devices.shape != (graph.num_ops,):
      return (Violation(
          'shape', f'{self.devices.size} devices for '
          f'{graph.num_ops} ops'),)
    out = np.flatnonzero((self.devices < 0)
                         | (self.devices >= self.cluster.num_devices))
    if out.size:
      return tuple(
          Violation(
              'shape', f'{graph.full_label(op)} has device number '
              f'{self.devices[op]} of '
              f'{self.cluster.num_devices}') for op in out)
    return (*self._wrong_devices(graph), *self._divided_groups(graph),
            *self._wrong_priorities(graph))

  def _wrong_devices(self, graph: op_graph.OpGraph) -> Iterator[Violation]:
    allowed = constraints.allowed_devices(graph, self.cluster)
    wrong = np.flatnonzero(~allowed[graph.groups, self.devices])
    if not wrong.size:
      return
    rounded = constraints.allowed_devices(graph.replace(may_round=True),
                                          self.cluster)
    labels = self.cluster.device_labels
    for op in wrong.tolist():
      group, device = graph.groups[op], self.devices[op]
      suited = ', '.join(np.array(labels)[allowed[group]].tolist())
      said = (f'{graph.full_label(op)} ({graph.op_types[op]}) is on '
              f'{labels[device]}')
      if rounded[group, device]:
        yield Violation(
            'numbers', f'{said}, where its numbers, or those of an op that '
            f'stays with it, are rounded differently; allowed: {suited}; or '
            'allow that by may_round')
      else:
        yield Violation('device', f'{said}; allowed: {suited}')

  def _wrong_priorities(self, graph: op_graph.OpGraph) -> Iterator[Violation]:
    if self.priorities is None:
      return
    if self.priorities.shape != (graph.num_ops,):
      yield Violation(
          'priority', f'{self.priorities.size} priorities for '
          f'{graph.num_ops} ops')
      return
    for op in np.flatnonzero(~np.isfinite(self.priorities)):
      yield Violation(
          'priority', f'{graph.full_label(op)} has priority '
          f'{self.priorities[op]}')

  def _divided_groups(self, graph: op_graph.OpGraph) -> Iterator[Violation]:
    lowest = np.full(graph.num_groups, self.cluster.num_devices)
    highest = np.full(graph.num_groups, -1)
    np.minimum.at(lowest, graph.groups, self.devices)
    np.maximum.at(highest, graph.groups, self.devices)
    divided = np.flatnonzero(lowest != highest)
    members = collections.defaultdict(list)
    for op in np.flatnonzero(np.isin(graph.groups, divided)):
      members[graph.groups[op]].append(op)
    for group in divided:
      ops = members[group]
      first, other = ops[0], next(
          op for op in ops if self.devices[op] != self.devices[ops[0]])
      yield Violation(
          'colocation',
          f'{graph.full_label(first)} and {graph.full_label(other)} must '
          'share a device but are on '
          f'{self.cluster.device_labels[self.devices[first]]} and '
          f'{self.cluster.device_labels[self.devices[other]]}')


def of_nothing(cluster: cluster_lib.Cluster) -> Placement:
  """The placement of a graph without ops.

  Args:
    cluster: Cluster of the placement.
  """
  return Placement(np.zeros(0, np.int32), cluster)


def from_groups(graph: op_graph.OpGraph, devices_of_groups: np.ndarray,
                cluster: cluster_lib.Cluster) -> Placement:
  """The placement that gives every op the device of its group.

  Args:
    graph: G groups.
    devices_of_groups: int [G], device of each group.
    cluster: Cluster of the devices.
  """
  return Placement(np.asarray(devices_of_groups)[graph.groups], cluster)


def of_rows(devices: np.ndarray, cluster: cluster_lib.Cluster,
            priorities: np.ndarray | None = None) -> list[Placement]:
  """K placements from arrays.

  Args:
    devices: int [K, N].
    cluster: Cluster of the devices.
    priorities: float [K, N], or [N] for all placements alike, or None.
  """
  if priorities is None:
    return [Placement(row, cluster) for row in devices]
  orders = np.broadcast_to(priorities, np.shape(devices))
  return [Placement(row, cluster, order) for row, order in zip(devices, orders)]
