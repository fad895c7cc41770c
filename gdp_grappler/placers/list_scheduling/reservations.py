"""How much memory a list scheduler sets aside for what it places.

Baechi (Jeon et al. 2020, section 3) adds up what each op of a device holds for
good and what it computes. Most tensors are gone long before the step ends, so
that this may be many times the true peak; here they count with the share of
all bytes that is alive at the worst moment if ops run one after the other.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph


def group_bytes(graph: op_graph.OpGraph, share: float) -> np.ndarray:
  """float64 [G], parameters and a share of the outputs.

  Args:
    graph: G groups.
    share: Of the outputs.
  """
  output = graph.output_bytes * (graph.executions > 0)
  return np.bincount(graph.groups, graph.param_bytes + share * output,
                     graph.num_groups)


def alive_share(graph: op_graph.OpGraph) -> float:
  """Bytes of tensors alive at the worst moment, over bytes of all tensors.

  Ops run in topological order; a tensor lives from its producer to its last
  consumer.
  """
  size = graph.tensor_bytes * (graph.executions[graph.tensor_ops] > 0)
  if not size.sum():
    return 1.
  position = np.empty(graph.num_ops, np.int64)
  position[graph.topological_order] = np.arange(graph.num_ops)
  last = position[graph.tensor_ops]
  data = graph.edge_tensors >= 0
  np.maximum.at(last, graph.edge_tensors[data], position[graph.edges[data, 1]])
  change = np.bincount(position[graph.tensor_ops], size, graph.num_ops + 1)
  change -= np.bincount(last + 1, size, graph.num_ops + 1)
  return float(np.cumsum(change).max() / size.sum())
