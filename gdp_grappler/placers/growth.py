"""`neighbourhood.grown` for searches that call it all the time, in C++."""

from __future__ import annotations

import ctypes
import functools

import numpy as np

from gdp_grappler import native


class Growth:
  """Draws connected sets of the V vertices of one graph."""

  def __init__(self, starts: np.ndarray, neighbours: np.ndarray,
               eagerness: np.ndarray) -> None:
    """Keeps the edges.

    Args:
      starts: int [V + 1], where the neighbours of each vertex begin.
      neighbours: int [E].
      eagerness: float [E], how eagerly each is joined.
    """
    self._starts = np.ascontiguousarray(starts, np.int64)
    self._neighbours = np.ascontiguousarray(neighbours, np.int64)
    self._eagerness = np.ascontiguousarray(eagerness, np.float64)

  def grown(self, labels: np.ndarray, start: int, size: int,
            seed: int) -> np.ndarray:
    """int64 [S], what `neighbourhood.grown` draws, in any order.

    Args:
      labels: int [V]; only vertices with the label of `start` count.
      start: A vertex.
      size: How many are wanted, at least 1.
      seed: Of the edges, as of `random.Random`; less than 2^64.

    Raises:
      MemoryError: there is not enough.
    """
    labels = np.ascontiguousarray(labels, np.int32)
    result = np.empty(size, np.int64)
    count = _grown()(len(labels), self._starts.ctypes.data,
                     self._neighbours.ctypes.data, self._eagerness.ctypes.data,
                     labels.ctypes.data, start, size, seed, result.ctypes.data)
    if count < 0:
      raise MemoryError('No memory to grow a set of vertices.')
    return result[:count]


@functools.cache
def _grown() -> ctypes._NamedFuncPointer:
  function = native.load_moves().gdp_grown
  pointer, i64 = ctypes.c_void_p, ctypes.c_int64
  function.restype = i64
  function.argtypes = [
      i64, pointer, pointer, pointer, pointer, i64, i64, ctypes.c_uint64,
      pointer
  ]
  return function
