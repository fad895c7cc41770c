"""The inputs of each op of a graph, in the order of a GraphDef."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class Input:
  """An edge into an op.

  Attributes:
    op: The producer.
    output: Number of the producer's output; None for a control edge.
  """

  op: int
  output: int | None


def of(graph: op_graph.OpGraph) -> list[list[Input]]:
  """Returns the inputs of each op, [N], control edges last."""
  first = np.searchsorted(np.sort(graph.tensor_ops), np.arange(graph.num_ops))
  by_op = np.argsort(graph.tensor_ops, kind='stable')
  outputs = np.empty(len(by_op), int)
  outputs[by_op] = np.arange(len(by_op)) - first[graph.tensor_ops[by_op]]
  data: list[list[Input]] = [[] for _ in graph.names]
  control: list[list[Input]] = [[] for _ in graph.names]
  for (source, target), tensor in zip(graph.edges.tolist(),
                                      graph.edge_tensors.tolist()):
    if tensor < 0:
      control[target].append(Input(source, None))
    else:
      data[target].append(Input(source, int(outputs[tensor])))
  return [own + edges for own, edges in zip(data, control)]
