"""The graph that partitioners cut: its vertices are groups of ops.

This module alone decides the weights of vertices and edges, so that METIS,
Scotch and Mt-KaHyPar solve the same problem. A net is one output of an op, with
the group that computes this output and all groups that use it. An edge joins
the producer of a net with one consumer. If two groups use a tensor, a cut of
edges counts the tensor twice. A cut of nets counts the tensor once for each
device that receives it.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from gdp_grappler.graph import op_graph

# Sum of all weights after rounding to integers. It fits builds of METIS and
# Mt-KaHyPar with integers of 32 bits.
TOTAL_WEIGHT = 1 << 30


@dataclasses.dataclass(frozen=True, eq=False)
class GroupGraph:
  """V vertices, one per group, and H nets.

  Attributes:
    weights: float64 [V], amount that parts balance: seconds or bytes.
    net_starts: int64 [H + 1], index of the first pin of each net.
    net_pins: int64 [P], vertices of all nets, different within a net; the first
      vertex of a net is its producer.
    net_bytes: float64 [H], bytes that each device other than the producer's
      receives.
  """

  weights: np.ndarray
  net_starts: np.ndarray
  net_pins: np.ndarray
  net_bytes: np.ndarray

  @property
  def num_vertices(self) -> int:
    """V, the number of vertices."""
    return len(self.weights)

  @functools.cached_property
  def adjacency(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compressed rows: starts [V + 1], neighbours [2M] and their bytes [2M].

    Every edge is in the rows of both vertices. Rows are sorted. No vertex is
    its own neighbour.
    """
    counts = np.diff(self.net_starts) - 1
    consumers = np.ones(len(self.net_pins), bool)
    consumers[self.net_starts[:-1]] = False
    source = np.repeat(self.net_pins[self.net_starts[:-1]], counts)
    target = self.net_pins[consumers]
    low, high = np.minimum(source, target), np.maximum(source, target)
    base = max(self.num_vertices, 1)
    keys, where = np.unique(low * base + high, return_inverse=True)
    size = np.bincount(where, np.repeat(self.net_bytes, counts), len(keys))
    rows = np.concatenate([keys // base, keys % base])
    columns = np.concatenate([keys % base, keys // base])
    order = np.lexsort((columns, rows))
    starts = starts_of(np.bincount(rows, minlength=self.num_vertices))
    return starts, columns[order], np.concatenate([size, size])[order]

  @functools.cached_property
  def rows(self) -> np.ndarray:
    """int64 [2M], the vertex of each entry of `adjacency`."""
    return np.repeat(np.arange(self.num_vertices), np.diff(self.adjacency[0]))

  @functools.cached_property
  def integer_weights(self) -> np.ndarray:
    """int64 [V], in proportion to `weights`, but at least 1."""
    return integers(self.weights)

  @functools.cached_property
  def integer_edges(self) -> np.ndarray:
    """int64 [2M], in proportion to the bytes of `adjacency`, at least 1."""
    return integers(self.adjacency[2], 2 * TOTAL_WEIGHT)

  def reweighted(self, weights: np.ndarray) -> GroupGraph:
    """The same graph with other weights of vertices.

    Args:
      weights: float64 [V].
    """
    result = dataclasses.replace(self, weights=weights)
    for name in ('adjacency', 'rows', 'integer_edges'):
      # The arrays do not depend on weights, and often take longer than a cut.
      result.__dict__[name] = getattr(self, name)
    return result

  def with_pins(self, keep: np.ndarray) -> GroupGraph:
    """The same vertices, but nets with only some of them.

    If a net loses its producer, its first consumer takes the producer's place.
    Nets that then have one vertex or none are left out.

    Args:
      keep: bool [V], vertices that stay in nets.
    """
    net = np.repeat(np.arange(len(self.net_bytes)), np.diff(self.net_starts))
    kept = keep[self.net_pins]
    pins = np.bincount(net[kept], minlength=len(self.net_bytes))
    whole = pins > 1
    return GroupGraph(self.weights, starts_of(pins[whole]),
                      self.net_pins[kept & whole[net]], self.net_bytes[whole])

  def induced(self, vertices: np.ndarray) -> GroupGraph:
    """The graph of some vertices alone, with new numbers from 0.

    Args:
      vertices: int [W], different vertices.
    """
    number = np.full(self.num_vertices, -1)
    number[vertices] = np.arange(len(vertices))
    part = self.with_pins(number >= 0)
    return GroupGraph(self.weights[vertices], part.net_starts,
                      number[part.net_pins], part.net_bytes)


def build(graph: op_graph.OpGraph, seconds: np.ndarray, devices: np.ndarray,
          message_bytes: float = 0.) -> GroupGraph:
  """The graph of the groups, weighted for some devices.

  Args:
    graph: G groups become G vertices.
    seconds: See `work`.
    devices: See `work`.
    message_bytes: Bytes added to each transfer for its latency, so that many
      small tensors cost something. A control edge has only these bytes.
  """
  return GroupGraph(work(graph, seconds, devices), *_nets(graph, message_bytes))


def work(graph: op_graph.OpGraph, seconds: np.ndarray,
         devices: np.ndarray) -> np.ndarray:
  """float64 [G], seconds of the ops of each group.

  If devices differ in speed, the share of a group in the seconds of all groups
  depends on the device. The result is the mean of these shares over the
  devices, times the seconds of all groups on the fastest device.

  Args:
    graph: N ops in G groups.
    seconds: float64 [N, D], seconds of ops (`Problem.busy_seconds`).
    devices: int [k], devices that share the work.
  """
  by_group = graph.group_sums(seconds[:, devices])
  totals = np.maximum(by_group.sum(axis=0), 1e-30)
  return (by_group / totals).mean(axis=1) * totals.min()


def memory_bytes(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [G], bytes of the parameters and outputs of each group.

  Args:
    graph: G groups.
  """
  own = graph.param_bytes + graph.output_bytes * (graph.executions > 0)
  return np.bincount(graph.groups, own, graph.num_groups)


def integers(weights: np.ndarray, total: int = TOTAL_WEIGHT) -> np.ndarray:
  """int64 [n], weights as integers of at least 1; the sum is about `total`.

  Args:
    weights: float64 [n], not negative.
    total: Sum of the result, if no weight is rounded up to 1.
  """
  scale = total / max(float(np.sum(weights)), 1e-30)
  return np.maximum(np.round(np.asarray(weights) * scale), 1).astype(np.int64)


def starts_of(counts: np.ndarray) -> np.ndarray:
  """int64 [n + 1], start of each of n consecutive runs, and end of the last.

  Args:
    counts: int [n], length of each run.
  """
  return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _nets(graph: op_graph.OpGraph,
          message_bytes: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Starts, pins and bytes of the nets; see `GroupGraph`."""
  source, target = graph.groups[graph.edges].astype(np.int64).T
  crossing = source != target
  base, num_tensors = max(graph.num_groups, 1), len(graph.tensor_ops)
  # The control edges of an op count as one more output of that op.
  outputs = np.where(graph.edge_tensors >= 0, graph.edge_tensors,
                     num_tensors + graph.edges[:, 0].astype(np.int64))
  # np.unique hashes, which takes longer than sorting for such keys.
  keys = np.sort(outputs[crossing] * base + target[crossing])
  keys = keys[np.diff(keys, prepend=-1) > 0]
  nets, first, counts = np.unique(keys // base, return_index=True,
                                  return_counts=True)
  alive = graph.executions > 0
  size = np.concatenate(
      [graph.tensor_bytes * alive[graph.tensor_ops],
       np.zeros(graph.num_ops)]) + message_bytes
  ops = np.concatenate([graph.tensor_ops, np.arange(graph.num_ops)])
  pins = np.insert(keys % base, first, graph.groups[ops[nets]])
  return starts_of(counts + 1), pins.astype(np.int64), size[nets]
