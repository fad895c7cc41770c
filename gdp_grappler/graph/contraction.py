"""Makes a small graph of a large one: ops of one tile become few nodes.

A tile is a set of groups, such as one time step of one layer. A whole tile
cannot become one op. Consumers of a tensor that the tile produces early would
wait for the whole tile, and two tiles may each need tensors of the other. So
ops of a tile become one node only if they agree in two numbers: the most
changes of tiles on a path to the op, and on a path from it. A chain of nodes is
then as long as the chain of their ops. The gradient of a tile's input, which is
on the longest path, and the gradient of its weights, for which nothing waits,
stay separate nodes.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

# Type of all nodes. No other module knows this type. So no module infers
# devices from it, or outputs that alias inputs.
TYPE = 'Contracted'


@dataclasses.dataclass(frozen=True, eq=False)
class Contraction:
  """A graph of N ops as a graph of M nodes.

  Attributes:
    graph: M nodes in C groups, which are the tiles. A node may be on any
      device. Its name is that of its op with the most work, and its type is
      `TYPE`.
    nodes: int64 [N], the node of each op.
  """

  graph: op_graph.OpGraph
  nodes: np.ndarray

  def summed(self, values: np.ndarray) -> np.ndarray:
    """Sums values [N, D] of ops over each node, float64 [M, D]."""
    count = self.graph.num_ops
    return np.stack([np.bincount(self.nodes, of, count) for of in values.T],
                    axis=1)


def contract(graph: op_graph.OpGraph, tiles: np.ndarray) -> Contraction:
  """Joins ops of a tile to nodes, and keeps the order and the longest paths.

  Tensors of one node that go to the same set of nodes become one tensor. All
  tensors count as if they were in the memory of the nodes' devices.

  Args:
    graph: N ops in G groups.
    tiles: int [G], the tile of each group, from 0 to C - 1.
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
  """Returns the node of each op, int64 [N], numbered from 0; see `contract`."""
  of_op = tiles[graph.groups]
  return unique_rows.distinct([of_op, *_depths(graph, of_op)])[1]


def _depths(graph: op_graph.OpGraph,
            tiles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns the most changes of tiles on paths to and from ops, [N] each."""
  order, none = graph.topological_order, np.zeros(graph.num_ops)
  changes = (tiles[graph.edges[:, 0]] != tiles[graph.edges[:, 1]]).astype(float)
  after = native_graph.ranks(graph.edges, order, changes, none)
  before = native_graph.ranks(graph.edges[:, ::-1], order[::-1].copy(), changes,
                              none)
  return before.astype(int), after.astype(int)


def _heaviest(graph: op_graph.OpGraph, nodes: np.ndarray) -> np.ndarray:
  """Returns each node's op with the most work, int [M]; the first of equals."""
  order = np.lexsort(
      (-np.arange(graph.num_ops), graph.flops + graph.io_bytes, nodes))
  return order[np.flatnonzero(np.diff(nodes[order], append=-1))]


@dataclasses.dataclass(frozen=True, eq=False)
class _Sent:
  """T tensors that nodes send each other, in E messages.

  Attributes:
    sources: int64 [T], the node that produces each tensor.
    sizes: float64 [T], bytes of each tensor.
    tensors: int64 [E], the tensor of each message.
    consumers: int64 [E], the node that gets each message.
  """

  sources: np.ndarray
  sizes: np.ndarray
  tensors: np.ndarray
  consumers: np.ndarray


def _sent(graph: op_graph.OpGraph, nodes: np.ndarray, count: int) -> _Sent:
  """Returns tensors between nodes; tensors for the same nodes become one."""
  data = graph.edge_tensors >= 0
  (tensors, consumers), _ = unique_rows.distinct(
      [graph.edge_tensors[data], nodes[graph.edges[data, 1]]])
  sources = nodes[graph.tensor_ops]
  leaving = sources[tensors] != consumers
  tensors, consumers = tensors[leaving], consumers[leaving]
  # Sets of nodes are compared by sums of random numbers.
  marks = np.random.default_rng(0).integers(1, 1 << 62, count)
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
  """Returns edges [E, 2] between different nodes, each once, int64 [E', 2]."""
  ends = nodes[edges]
  pairs, _ = unique_rows.distinct(list(ends[ends[:, 0] != ends[:, 1]].T))
  return pairs.T
