"""Step times of a placement in which some groups change their device."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class Move:
  """A placement with some groups on another device, otherwise unchanged.

  Attributes:
    device: Index of the device.
    groups: Number of the chosen groups that may be on this device. The move
      puts all of them there.
    step_time_s: Seconds of the simulated step, first in, first out.
    overflow_bytes: Bytes by which the placement exceeds memory pools.
    cut_tensors: Number of tensors that are sent between devices.
    cut_bytes: Bytes of these tensors.
  """

  device: int
  groups: int
  step_time_s: float
  overflow_bytes: int
  cut_tensors: int
  cut_bytes: int


@dataclasses.dataclass(frozen=True)
class Cut:
  """A tensor that is sent between devices.

  Attributes:
    op: Index of the op that makes the tensor.
    source: Index of the op's device.
    target: Index of the device to which the tensor is sent.
    size_bytes: Size of the tensor.
    seconds: Seconds of the transfer on an idle link.
  """

  op: int
  source: int
  target: int
  size_bytes: int
  seconds: float


def moves(graph: op_graph.OpGraph, placement: placement_lib.Placement,
          groups: np.ndarray,
          simulator: simulator_lib.Simulator) -> tuple[Move, ...]:
  """Moves some groups to one device after the other, and prices each result.

  A group stays where it is if it may not be on the device. The result leaves
  out a device to which no group would move.

  Args:
    graph: G groups.
    placement: Legal placement of the graph.
    groups: int [M], indices of the groups to move.
    simulator: Simulator of the placement's cluster.
  """
  allowed = constraints.allowed_devices(graph, placement.cluster)
  of_groups = np.zeros(graph.num_groups, np.int32)
  of_groups[graph.groups] = placement.devices
  rows, found = [], []
  for device in range(placement.cluster.num_devices):
    movable = groups[allowed[groups, device]]
    if (of_groups[movable] != device).any():
      row = of_groups.copy()
      row[movable] = device
      rows.append(row)
      found.append((device, len(movable)))
  if not rows:
    return ()
  prices = simulator.price_groups(graph, np.stack(rows))
  result = []
  for index, (device, count) in enumerate(found):
    moved = placement_lib.from_groups(graph, rows[index], placement.cluster)
    tensors, size = moved.cut(graph)
    result.append(
        Move(device, count, float(prices.seconds[index]),
             int(prices.overflow_bytes[index]), tensors, size))
  return tuple(result)


def cuts(graph: op_graph.OpGraph, placement: placement_lib.Placement,
         groups: np.ndarray | None = None) -> tuple[Cut, ...]:
  """Tensors that are sent between devices, by decreasing size.

  Args:
    graph: N ops.
    placement: Placement of these ops.
    groups: int [M], groups that make or read the tensors. None means all.
  """
  edges = True if groups is None else np.isin(graph.groups,
                                              groups)[graph.edges].any(axis=1)
  latency_s, bytes_per_s = placement.cluster.link_arrays[:2]
  result = []
  for tensor, target in placement.sent(graph, edges).T.tolist():
    op = int(graph.tensor_ops[tensor])
    source, size = int(placement.devices[op]), int(graph.tensor_bytes[tensor])
    result.append(
        Cut(
            op, source, target, size,
            float(latency_s[source, target]
                  + size / bytes_per_s[source, target])))
  return tuple(sorted(result, key=lambda cut: -cut.size_bytes))
