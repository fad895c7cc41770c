"""Ops that nobody spoke of go where their neighbours are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gdp_grappler.graph import op_graph

# The largest type that a learning rate or a step count has.
_NUMBER_BYTES = 8


class _Neighbour(NamedTuple):
  """An op beside another one, and what passes between them."""

  op: int
  size: int
  is_state: bool


def follow(graph: op_graph.OpGraph, devices: np.ndarray,
           allowed: np.ndarray) -> np.ndarray:
  """Devices for groups that have none, from those that have one.

  In topological order, an op goes where most bytes of its inputs are made;
  then, against that order, what is left goes where most of its outputs are
  read; and so on until nothing changes. Of several inputs, variables alone
  count: what works on a variable is beside it, and with it the heavy ops of a
  layer. One number, such as a learning rate, which the updates of all variables
  read, draws nothing.

  Args:
    graph: G groups.
    devices: int [G], -1 for none.
    allowed: bool [G, D].

  Returns:
    int [G]; -1 for groups that have nothing to do with one that has a device.
  """
  result, groups = devices.tolist(), graph.groups.tolist()
  order = graph.topological_order.tolist()
  inputs, outputs = _neighbours(graph)
  while True:
    before = result.count(-1)
    for ops, neighbours in ((order, inputs), (reversed(order), outputs)):
      for op in ops:
        group = groups[op]
        if result[group] < 0:
          result[group] = _heaviest(neighbours[op], groups, result,
                                    allowed[group])
    if result.count(-1) in (0, before):
      return np.array(result, int)


def _heaviest(neighbours: list[_Neighbour], groups: list[int],
              devices: list[int], allowed: np.ndarray) -> int:
  """The allowed device of most bytes; -1 for none."""
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
  """Of each op: those it reads, and those that read it."""
  holds = graph.holds_variables
  is_state = holds[graph.groups].tolist()
  inputs: list[list[_Neighbour]] = [[] for _ in range(graph.num_ops)]
  outputs: list[list[_Neighbour]] = [[] for _ in range(graph.num_ops)]
  # More than nothing, for a control edge is a neighbour, too.
  for (source, target), size in zip(graph.edges.tolist(),
                                    (graph.edge_bytes + 1).tolist()):
    inputs[target].append(
        _Neighbour(source, size, is_state[source] and size > _NUMBER_BYTES + 1))
    outputs[source].append(_Neighbour(target, size, False))
  return inputs, outputs
