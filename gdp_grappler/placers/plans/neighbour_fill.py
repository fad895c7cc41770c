"""Devices of ops that a plan does not name, from the devices of neighbours."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdp_grappler.graph import op_graph

# Largest number of bytes of a learning rate or of a step count.
_NUMBER_BYTES = 8


class _Neighbour(NamedTuple):
  """A neighbour of an op.

  Attributes:
    op: Index of the neighbour.
    size: Bytes between the two ops, plus 1.
    is_state: Whether the neighbour holds a variable of more than one number.
  """

  op: int
  size: int
  is_state: bool


def follow(graph: op_graph.OpGraph, devices: np.ndarray, allowed: np.ndarray,
           readers_first: bool = False) -> np.ndarray:
  """Gives devices to groups without one, from groups with one.

  In topological order, an op gets the device that sends it the most bytes.
  Then, in reverse order, each remaining op gets the device to which it sends
  the most bytes. Both passes repeat until no group changes. If an op reads
  variables, only these count: an op that uses a variable gets the device of the
  variable. So the heavy ops of a layer are on the device of its variables.
  Variables of one number do not count, because the updates of all variables
  read the learning rate.

  Args:
    graph: G groups.
    devices: int [G], -1 for a group without a device.
    allowed: bool [G, D], devices that each group may have.
    readers_first: Whether the reverse order comes first. Use it for ops that
      update a variable: a gradient is then with its variable, and not with the
      batch.

  Returns:
    int [G]; -1 for groups that no path connects with a group with a device, and
    for groups that may have none of their neighbours' devices.
  """
  result, groups = devices.tolist(), graph.groups.tolist()
  order = graph.topological_order.tolist()
  inputs, outputs = _neighbours(graph)
  passes = [(order, inputs), (order[::-1], outputs)]
  if readers_first:
    # An op that only waits for an update does not attract the update.
    carried = [[n for n in own if n.size > 1] for own in outputs]
    passes = [(order[::-1], carried), (order, inputs)]
  while True:
    before = result.count(-1)
    for ops, neighbours in passes:
      for op in ops:
        group = groups[op]
        if result[group] < 0:
          result[group] = _heaviest(neighbours[op], groups, result,
                                    allowed[group])
    if result.count(-1) in (0, before):
      return np.array(result, int)


def _heaviest(neighbours: list[_Neighbour], groups: list[int],
              devices: list[int], allowed: np.ndarray) -> int:
  """The allowed device with the most bytes of neighbours; -1 for none."""
  votes: dict[tuple[bool, int], int] = {}
  for op, size, is_state in neighbours:
    device = devices[groups[op]]
    if device >= 0 and allowed[device]:
      key = is_state, device
      votes[key] = votes.get(key, 0) + size
  if not votes:
    return -1
  return max(votes, key=lambda key: (key[0], votes[key], -key[1]))[1]


def _neighbours(
    graph: op_graph.OpGraph
) -> tuple[list[list[_Neighbour]], list[list[_Neighbour]]]:
  """For each op, the ops that it reads and the ops that read its outputs."""
  holds = graph.holds_variables
  is_state = holds[graph.groups].tolist()
  inputs: list[list[_Neighbour]] = [[] for _ in range(graph.num_ops)]
  outputs: list[list[_Neighbour]] = [[] for _ in range(graph.num_ops)]
  # The 1 makes the source of a control edge count as a neighbour.
  for (source, target), size in zip(graph.edges.tolist(),
                                    (graph.edge_bytes + 1).tolist()):
    inputs[target].append(
        _Neighbour(source, size, is_state[source] and size > _NUMBER_BYTES + 1))
    outputs[source].append(_Neighbour(target, size, False))
  return inputs, outputs
