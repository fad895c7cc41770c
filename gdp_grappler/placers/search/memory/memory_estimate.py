"""How much memory is set aside for what is placed, before steps tell.

Baechi (Jeon et al. 2020, section 3) adds up what each op of a device holds for
good and what it computes. Most tensors are gone long before the step ends, so
that this may be many times the true peak; here they count with the share of
all bytes that is alive at the worst moment if ops run one after the other. What
an op only hands on, such as a variable's value, takes no memory of its own.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph


def group_bytes(graph: op_graph.OpGraph, share: float) -> np.ndarray:
  """float64 [G], parameters and a share of the outputs.

  Args:
    graph: G groups.
    share: Of the outputs.
  """
  output = np.bincount(graph.tensor_ops, _own_bytes(graph), graph.num_ops)
  return np.bincount(graph.groups, graph.param_bytes + share * output,
                     graph.num_groups)


def alive_share(graph: op_graph.OpGraph) -> float:
  """Bytes of tensors alive at the worst moment, over bytes of all tensors.

  Ops run in topological order; a tensor lives from its producer to its last
  consumer, those of ops that hand it on included.
  """
  size = _own_bytes(graph)
  if not size.sum():
    return 1.
  position = np.empty(graph.num_ops, np.int64)
  position[graph.topological_order] = np.arange(graph.num_ops)
  last = _last_uses(graph, position)
  change = np.bincount(position[graph.tensor_ops], size, graph.num_ops + 1)
  change -= np.bincount(last + 1, size, graph.num_ops + 1)
  return float(np.cumsum(change).max() / size.sum())


def _own_bytes(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [T], of what is computed and not handed on."""
  own = (graph.executions > 0) & ~simulator.aliases(graph)
  return graph.tensor_bytes * own[graph.tensor_ops].astype(float)


def _last_uses(graph: op_graph.OpGraph, position: np.ndarray) -> np.ndarray:
  """int64 [T], positions [N] of the last ops that have each buffer."""
  last = position[graph.tensor_ops]
  data = np.flatnonzero(graph.edge_tensors >= 0)
  tensors, consumers = graph.edge_tensors[data], graph.edges[data, 1]
  np.maximum.at(last, tensors, position[consumers])
  # Who hands a buffer on keeps it for those after him, the last one first.
  first = data[np.unique(consumers, return_index=True)[1]]
  handed = first[simulator.aliases(graph)[graph.edges[first, 1]]]
  ops = graph.edges[handed, 1]
  order = np.argsort(-position[ops], kind='stable')
  inputs = dict(zip(ops[order].tolist(), graph.edge_tensors[handed[order]]))
  outputs: dict[int, list[int]] = {op: [] for op in inputs}
  for tensor, op in enumerate(graph.tensor_ops.tolist()):
    if op in outputs:
      outputs[op].append(tensor)
  for op, tensor in inputs.items():
    last[tensor] = max([last[tensor], *last[outputs[op]]])
  return last
