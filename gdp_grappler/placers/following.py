"""Ops that nobody spoke of go where their neighbours are."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph


def follow(graph: op_graph.OpGraph, devices: np.ndarray,
           allowed: np.ndarray) -> np.ndarray:
  """Devices for groups that have none, from those that have one.

  In topological order, an op goes where most bytes of its inputs are made;
  then, against that order, what is left goes where most of its outputs are
  read; and so on until nothing changes. Where both weigh alike, variables win:
  they are read and written, while what meets them is sent once.

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


def _heaviest(neighbours: list[tuple[int, int]], groups: list[int],
              devices: list[int], allowed: np.ndarray) -> int:
  """The allowed device of most bytes; -1 for none."""
  votes: dict[int, int] = {}
  for other, size in neighbours:
    device = devices[groups[other]]
    if device >= 0 and allowed[device]:
      votes[device] = votes.get(device, 0) + size
  return max(votes, key=lambda d: (votes[d], -d), default=-1)


def _neighbours(
    graph: op_graph.OpGraph
) -> tuple[list[list[tuple[int, int]]], list[list[tuple[int, int]]]]:
  """Of each op: those it reads and those that read it, with bytes."""
  holds = np.bincount(graph.groups, graph.param_bytes, graph.num_groups) > 0
  # More than nothing, for a control edge is a neighbour, too.
  size = 2 * (graph.edge_bytes + 1)
  inputs: list[list[tuple[int, int]]] = [[] for _ in range(graph.num_ops)]
  outputs: list[list[tuple[int, int]]] = [[] for _ in range(graph.num_ops)]
  of_source, of_target = holds[graph.groups[graph.edges]].T
  for (source, target), out, back in zip(graph.edges.tolist(),
                                         (size + of_source).tolist(),
                                         (size + of_target).tolist()):
    inputs[target].append((source, out))
    outputs[source].append((target, back))
  return inputs, outputs
