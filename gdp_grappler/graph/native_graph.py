"""What is done with every op and edge of a graph, in C++.

Of `graph_algorithms.cc`; who calls this says what it means.
"""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from gdp_grappler import native


def order(starts: np.ndarray, targets: np.ndarray) -> np.ndarray:
  """int32 [N'], ops such that producers come before consumers.

  Kahn's algorithm, first in first out; N' < N where edges form a cycle.

  Args:
    starts: int64 [N + 1], where the consumers of each op begin.
    targets: int32 [E], consumers.

  Raises:
    MemoryError: there is not enough.
  """
  result = np.empty(len(starts) - 1, np.int32)
  count = _library().gdp_graph_order(len(result), starts.ctypes.data,
                                     targets.ctypes.data, result.ctypes.data)
  _check(count)
  return result[:count]


def longest_from_sources(starts: np.ndarray, targets: np.ndarray,
                         in_order: np.ndarray, cost: np.ndarray) -> np.ndarray:
  """float64 [N], the costliest path to each op, itself included.

  Args:
    starts: int64 [N + 1], where the consumers of each op begin.
    targets: int32 [E], consumers.
    in_order: int32 [N], of `order`.
    cost: float64 [N].
  """
  result = np.empty(len(cost))
  cost = np.ascontiguousarray(cost, np.float64)
  _library().gdp_graph_paths(len(cost), starts.ctypes.data, targets.ctypes.data,
                             in_order.ctypes.data, cost.ctypes.data,
                             result.ctypes.data, None)
  return result


def longest_to_sinks(starts: np.ndarray, targets: np.ndarray,
                     in_order: np.ndarray, cost: np.ndarray) -> np.ndarray:
  """float64 [N], the costliest path from each op on; as above."""
  result = np.empty(len(cost))
  cost = np.ascontiguousarray(cost, np.float64)
  _library().gdp_graph_paths(len(cost), starts.ctypes.data, targets.ctypes.data,
                             in_order.ctypes.data, cost.ctypes.data, None,
                             result.ctypes.data)
  return result


def ranks(edges: np.ndarray, in_order: np.ndarray, edge_s: np.ndarray,
          seconds: np.ndarray) -> np.ndarray:
  """float64 [N], the longest path on from each op, itself included.

  Args:
    edges: int32 [E, 2].
    in_order: int32 [N], of `order`.
    edge_s: float64 [E], from the start of the producer to the consumer's.
    seconds: float64 [N], of ops that nothing needs; what no path is below.

  Raises:
    MemoryError: there is not enough.
  """
  result = np.array(seconds, np.float64)
  edges = np.ascontiguousarray(edges, np.int32)
  edge_s = np.ascontiguousarray(edge_s, np.float64)
  _check(_library().gdp_graph_ranks(len(result), len(edges), edges.ctypes.data,
                                    in_order.ctypes.data, edge_s.ctypes.data,
                                    result.ctypes.data))
  return result


def depth_first(num_ops: int, edges: np.ndarray) -> np.ndarray:
  """float64 [N], places from the end; what an op needs comes before it.

  Ops that nothing needs have the order of the graph, what one needs that of
  its edges.

  Args:
    num_ops: N.
    edges: int32 [E, 2].

  Raises:
    MemoryError: there is not enough.
  """
  result = np.empty(num_ops)
  edges = np.ascontiguousarray(edges, np.int32)
  _check(_library().gdp_graph_depth_first(num_ops, len(edges),
                                          edges.ctypes.data,
                                          result.ctypes.data))
  return result


def coarsen(work: np.ndarray, kinds: np.ndarray, sources: np.ndarray,
            consumers: np.ndarray, heavy: np.ndarray, slight: np.ndarray,
            fair: float, light: float) -> np.ndarray:
  """int32 [G], the smallest group of the unit of each group.

  Args:
    work: float64 [G].
    kinds: int32 [G], groups of one kind may be joined.
    sources: int32 [C], producers of edges between groups.
    consumers: int32 [C].
    heavy: int64 [C], edges in the order in which they join up to `fair`.
    slight: int64 [C], in the order in which they join units below `light`.
    fair: Most work of a unit that heavy edges make.
    light: Units with less are joined to a neighbour.

  Raises:
    MemoryError: there is not enough.
  """
  result = np.empty(len(work), np.int32)
  _check(_library().gdp_graph_coarsen(len(work),
                                      work.ctypes.data, kinds.ctypes.data,
                                      len(sources), sources.ctypes.data,
                                      consumers.ctypes.data, heavy.ctypes.data,
                                      slight.ctypes.data, fair, light,
                                      result.ctypes.data))
  return result


def components(count: int, edges: np.ndarray) -> np.ndarray:
  """int32 [n], the smallest item that edges join each item to.

  Args:
    count: n.
    edges: int [E, 2], pairs of items.

  Raises:
    MemoryError: there is not enough.
  """
  every = np.arange(len(edges), dtype=np.int64)
  sources, targets = np.ascontiguousarray(edges.T, np.int32)
  return coarsen(np.zeros(count), np.zeros(count, np.int32), sources, targets,
                 every, every, np.inf, 0.)


def _check(status: int) -> None:
  if status < 0:
    raise MemoryError('No memory for a graph of this size.')


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPH)
  pointer, i64, f64 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double
  lib.gdp_graph_order.restype = i64
  lib.gdp_graph_order.argtypes = [i64, pointer, pointer, pointer]
  lib.gdp_graph_paths.restype = None
  lib.gdp_graph_paths.argtypes = [
      i64, pointer, pointer, pointer, pointer, pointer, pointer
  ]
  lib.gdp_graph_ranks.restype = ctypes.c_int32
  lib.gdp_graph_ranks.argtypes = [i64, i64, pointer, pointer, pointer, pointer]
  lib.gdp_graph_depth_first.restype = ctypes.c_int32
  lib.gdp_graph_depth_first.argtypes = [i64, i64, pointer, pointer]
  lib.gdp_graph_coarsen.restype = ctypes.c_int32
  lib.gdp_graph_coarsen.argtypes = [
      i64, pointer, pointer, i64, pointer, pointer, pointer, pointer, f64, f64,
      pointer
  ]
  return lib
