"""Estimates the memory of groups before a step is simulated.

Baechi (Jeon et al. 2020, section 3) adds up the parameters and the outputs of
all ops on a device. A step frees most outputs long before its end, so this sum
may be many times the true peak. Here only a share of the bytes of each output
counts. The share is the peak of the bytes of all tensors, if ops run one after
the other, divided by the sum of these bytes. An op that passes on the buffer of
its input, such as the read of a variable, takes no memory of its own. A
constant holds all its bytes for good, like a variable.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.control_flow import merges


def group_bytes(graph: op_graph.OpGraph, share: float) -> np.ndarray:
  """float64 [G], variables, constants, and a share of other outputs.

  Args:
    graph: G groups.
    share: Share of the bytes of outputs that counts, from 0 to 1.
  """
  output = np.bincount(graph.tensor_ops, _own_bytes(graph), graph.num_ops)
  return np.bincount(graph.groups, graph.resident_bytes + share * output,
                     graph.num_groups)


def alive_share(graph: op_graph.OpGraph) -> float:
  """Bytes of tensors alive at the worst moment, over bytes of all tensors.

  Ops run in topological order. A tensor lives from its producer to its last
  consumer. If a consumer passes on the tensor's buffer, the tensor lives until
  the last consumer of the passed buffer.

  Args:
    graph: Any graph; the result is 1 if its tensors have no bytes.
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
  """float64 [T], bytes of tensors; 0 for constants and buffers passed on."""
  own = (graph.executions > 0) & ~simulator.aliases(graph) & ~graph.constants
  return graph.tensor_bytes * own[graph.tensor_ops].astype(float)


def _last_uses(graph: op_graph.OpGraph, position: np.ndarray) -> np.ndarray:
  """int64 [T], position of the last op that uses each tensor's buffer.

  Args:
    graph: T tensors, N ops.
    position: int64 [N], position of each op in the topological order.
  """
  last = position[graph.tensor_ops]
  order = merges.live_first(graph)
  edges, edge_tensors = graph.edges[order], graph.edge_tensors[order]
  data = np.flatnonzero(edge_tensors >= 0)
  tensors, consumers = edge_tensors[data], edges[data, 1]
  np.maximum.at(last, tensors, position[consumers])
  # An op that passes its buffer on keeps the buffer alive for the consumers of
  # its outputs. The loop takes the last such op first.
  first = data[np.unique(consumers, return_index=True)[1]]
  handed = first[simulator.aliases(graph)[edges[first, 1]]]
  ops = edges[handed, 1]
  order = np.argsort(-position[ops], kind='stable')
  inputs = dict(zip(ops[order].tolist(), edge_tensors[handed[order]]))
  outputs: dict[int, list[int]] = {op: [] for op in inputs}
  for tensor, op in enumerate(graph.tensor_ops.tolist()):
    if op in outputs:
      outputs[op].append(tensor)
  for op, tensor in inputs.items():
    last[tensor] = max([last[tensor], *last[outputs[op]]])
  return last
