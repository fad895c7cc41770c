"""Smaller graphs, in which what belongs together is one op.

A tile is a set of groups, such as a time step of a layer. It is no op: what
comes out of it in the middle would wait for its end, and two tiles may each
need something of the other. So the ops of a tile are one node where as many
changes of tiles come before them, and as many after. A chain of such nodes is
as long as that of the ops; what the longest path through the graph needs, the
gradient of a tile's input, stays apart from what nothing waits for, the
gradient of its weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

# Nodes are of no type that anybody knows: what ops may do, and whether their
# outputs are their inputs, is not to be read from a node.
TYPE = 'Contracted'
_SEED = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Contraction:
  """A graph of N ops as one of M nodes.

  Attributes:
    graph: M nodes in C groups, the tiles; may be on any device. A node is
      called like the op that has most to do in it; its type is `TYPE`.
    nodes: int64 [N], the node of each op.
  """

  graph: op_graph.OpGraph
  nodes: np.ndarray

  def summed(self, values: np.ndarray) -> np.ndarray:
    """float64 [M, D], what values [N, D] of the ops of each node come to."""
    count = self.graph.num_ops
    return np.stack([np.bincount(self.nodes, of, count) for of in values.T],
                    axis=1)


def contract(graph: op_graph.OpGraph, tiles: np.ndarray) -> Contraction:
  """Makes ops of one tile one node, as far as neither order nor paths change.

  What nodes send: of the tensors of a node those that the same nodes need are
  one.

  Args:
    graph: N ops in G groups.
    tiles: int [G], from 0 to C - 1.
  """
  of_op = nodes(graph, tiles)
  count = int(of_op.max(initial=-1)) + 1
  heaviest = _heaviest(graph, of_op)
  sent = _sent(graph, of_op, count)
  control = _between(of_op, graph.edges[graph.edge_tensors < 0])
  data = np.stack([sent.sources[sent.tensors], sent.consumers], axis=1)
  contracted = op_graph.OpGraph(
      graph.name, tuple(graph.names[op] for op in heaviest), (TYPE,) * count,
      np.concatenate([data, control]),
      np.concatenate([sent.tensors, np.full(len(control),
                                            -1)]), sent.sources, sent.sizes,
      np.bincount(of_op, graph.flops, count),
      np.bincount(of_op, graph.io_bytes, count),
      np.bincount(of_op, graph.param_bytes, count),
      tiles[graph.groups[heaviest]],
      np.ones((count, len(op_graph.DEVICE_TYPES)), bool), ('',) * count,
      np.zeros(count, bool), ('',) * count,
      np.bincount(of_op, graph.executions > 0, count) > 0)
  return Contraction(contracted, of_op)


def nodes(graph: op_graph.OpGraph, tiles: np.ndarray) -> np.ndarray:
  """int64 [N], from 0, which ops are one node; see `contract`."""
  of_op = tiles[graph.groups]
  return unique_rows.distinct([of_op, *_depths(graph, of_op)])[1]


def _depths(graph: op_graph.OpGraph,
            tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """int [N] each, most changes of tiles [N] on a path to each op, and on."""
  order, none = graph.topological_order, np.zeros(graph.num_ops)
  changes = (tiles[graph.edges[:, 0]] != tiles[graph.edges[:, 1]]).astype(float)
  after = native_graph.ranks(graph.edges, order, changes, none)
  before = native_graph.ranks(graph.edges[:, ::-1], order[::-1].copy(), changes,
                              none)
  return before.astype(int), after.astype(int)


def _heaviest(graph: op_graph.OpGraph, nodes: np.ndarray) -> np.ndarray:
  """int [M], the op of each node that has most to do; of equals the first."""
  order = np.lexsort(
      (-np.arange(graph.num_ops), graph.flops + graph.io_bytes, nodes))
  return order[np.flatnonzero(np.diff(nodes[order], append=-1))]


@dataclasses.dataclass(frozen=True, eq=False)
class _Sent:
  """T tensors that nodes send each other, in E messages.

  Attributes:
    sources: int64 [T], the node that a tensor is of.
    sizes: float64 [T], bytes.
    tensors: int64 [E], what is sent.
    consumers: int64 [E], the node that needs it.
  """

  sources: np.ndarray
  sizes: np.ndarray
  tensors: np.ndarray
  consumers: np.ndarray


def _sent(graph: op_graph.OpGraph, nodes: np.ndarray, count: int) -> _Sent:
  """What leaves a node; what the same nodes need of it is one tensor."""
  data = graph.edge_tensors >= 0
  (tensors, consumers), _ = unique_rows.distinct(
      [graph.edge_tensors[data], nodes[graph.edges[data, 1]]])
  sources = nodes[graph.tensor_ops]
  leaving = sources[tensors] != consumers
  tensors, consumers = tensors[leaving], consumers[leaving]
  # Sets of nodes are the same if sums of random numbers are.
  marks = np.random.default_rng(_SEED).integers(1, 1 << 62, count)
  sums = np.zeros(len(sources), np.int64)
  np.add.at(sums, tensors, marks[consumers])
  used = np.unique(tensors)
  (of, _), where = unique_rows.distinct([sources[used], sums[used]])
  alive = graph.executions[graph.tensor_ops[used]] > 0
  merged = np.zeros(len(sources), np.int64)
  merged[used] = where
  messages, _ = unique_rows.distinct([merged[tensors], consumers])
  return _Sent(of, np.bincount(where, graph.tensor_bytes[used] * alive,
                               len(of)), *messages)


def _between(nodes: np.ndarray, edges: np.ndarray) -> np.ndarray:
  """int64 [E', 2], edges [E, 2] between different nodes, each once."""
  ends = nodes[edges]
  pairs, _ = unique_rows.distinct(list(ends[ends[:, 0] != ends[:, 1]].T))
  return pairs.T
