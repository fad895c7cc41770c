"""Algorithms that visit every op and edge of a graph, in C++.

These are the functions of `graph_algorithms.cc` over NumPy arrays. Callers
decide what the results mean.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Sequence

import numpy as np

from gdp_grappler import native


def order(num_ops: int,
          edges: np.ndarray | Sequence[tuple[int, int]]) -> np.ndarray:
  """Returns the ops with producers before consumers, int32 [N'].

  Kahn's algorithm, first in, first out. N' < N if edges form a cycle.

  Args:
    num_ops: N.
    edges: int32 [E, 2], producer and consumer.

  Raises:
    MemoryError: there is not enough memory.
  """
  sources, targets = np.asarray(edges, np.int32).reshape(-1, 2).T
  by_source = np.argsort(sources, kind='stable')
  targets = targets[by_source]
  starts = np.searchsorted(sources[by_source], np.arange(num_ops + 1))
  result = np.empty(num_ops, np.int32)
  count = _library().gdp_graph_order(num_ops, starts.ctypes.data,
                                     targets.ctypes.data, result.ctypes.data)
  _check(count)
  return result[:count]


def longest_from_sources(edges: np.ndarray, in_order: np.ndarray,
                         cost: np.ndarray) -> np.ndarray:
  """Returns the cost of the longest path that ends at each op, float64 [N].

  Args:
    edges: int32 [E, 2], producer and consumer.
    in_order: int32 [N], result of `order`.
    cost: float64 [N], cost of each op, 0 or more.

  Raises:
    MemoryError: there is not enough memory.
  """
  return longest_to_sinks(edges[:, ::-1], in_order[::-1].copy(), cost)


def longest_to_sinks(edges: np.ndarray, in_order: np.ndarray,
                     cost: np.ndarray) -> np.ndarray:
  """Returns the cost of the longest path that begins at each op, float64 [N].

  The arguments are those of `longest_from_sources`.

  Raises:
    MemoryError: there is not enough memory.
  """
  return ranks(edges, in_order, cost[edges[:, 0]], cost)


def ranks(edges: np.ndarray, in_order: np.ndarray, edge_s: np.ndarray,
          seconds: np.ndarray) -> np.ndarray:
  """Returns the longest path from each op to the end, float64 [N].

  Args:
    edges: int32 [E, 2], producer and consumer.
    in_order: int32 [N], result of `order`.
    edge_s: float64 [E], seconds from the start of the producer to the start of
      the consumer.
    seconds: float64 [N], length for ops without consumers, and a lower limit
      for other ops.

  Raises:
    MemoryError: there is not enough memory.
  """
  result = np.array(seconds, np.float64)
  edges = np.ascontiguousarray(edges, np.int32)
  edge_s = np.ascontiguousarray(edge_s, np.float64)
  _check(_library().gdp_graph_ranks(len(result), len(edges), edges.ctypes.data,
                                    in_order.ctypes.data, edge_s.ctypes.data,
                                    result.ctypes.data))
  return result


def depth_first(num_ops: int, edges: np.ndarray) -> np.ndarray:
  """Returns a depth-first order as ranks, float64 [N]; higher ranks come first.

  The producers of an op come before it. Ops without consumers are visited in
  the order of the graph, and the producers of an op in the order of its edges.

  Args:
    num_ops: N.
    edges: int32 [E, 2], producer and consumer.

  Raises:
    MemoryError: there is not enough memory.
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
  """Returns the smallest group of each group's unit, int32 [G].

  Args:
    work: float64 [G], work of each group.
    kinds: int32 [G], kind of each group. Only groups of one kind are joined.
    sources: int32 [C], producers of edges between groups.
    consumers: int32 [C], consumers of these edges.
    heavy: int64 [C], edges in the order in which they join units whose work is
      at most `fair` in sum.
    slight: int64 [C], edges in the order in which they join units below
      `light`.
    fair: Largest work of a unit that heavy edges make.
    light: Units with less work are joined to a neighbour.

  Raises:
    MemoryError: there is not enough memory.
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
  """Returns the smallest item of each item's connected component, int32 [n].

  Args:
    count: n, number of items.
    edges: int [E, 2], pairs of items.

  Raises:
    MemoryError: there is not enough memory.
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
  pointer, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
  f64 = ctypes.c_double
  native.declare(
      lib, {
          'gdp_graph_order': (i64, [i64, *[pointer] * 3]),
          'gdp_graph_ranks': (i32, [i64, i64, *[pointer] * 4]),
          'gdp_graph_depth_first': (i32, [i64, i64, pointer, pointer]),
          'gdp_graph_coarsen':
              (i32,
               [i64, pointer, pointer, i64, *[pointer] * 4, f64, f64, pointer]),
      })
  return lib
