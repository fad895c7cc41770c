"""Assigns parts to devices.

A partitioner without distances numbers its parts in any order. The numbers are
the devices, so the order matters if distances between devices differ.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.placers import group_graph
from gdp_grappler.placers.partitioning import partitioning

# Difference of two shares, as a share of the largest one, up to which two parts
# may change places.
_EQUAL_SHARES = 0.01


def arrange(parts: np.ndarray, target: partitioning.Target,
            allowed: np.ndarray) -> np.ndarray:
  """int [V], the same parts with numbers that suit the target's devices.

  Two parts of equal share exchange their devices as long as the exchange
  shortens the transfers between parts, or puts more vertices on legal devices.

  Args:
    parts: int [V], the part of each vertex, an index into `target.devices`.
    target: The devices.
    allowed: bool [V, D], devices that each vertex may have.
  """
  graph, count = target.graph, len(target.devices)
  degree = np.bincount(graph.rows, graph.adjacency[2], graph.num_vertices) + 1
  misfits = np.stack([
      np.bincount(parts, degree * ~allowed[:, device], count)
      for device in target.devices
  ], axis=1) * target.distances.max()
  return _exchange(_exchanged_bytes(graph, parts, count), target.distances,
                   misfits, target.shares, target.num_workers)[parts]


def _exchanged_bytes(graph: group_graph.GroupGraph, parts: np.ndarray,
                     count: int) -> np.ndarray:
  """float64 [k, k], half of the bytes between two parts; symmetric.

  The sum of all entries counts every cut edge once.
  """
  _, neighbours, size = graph.adjacency
  result = np.bincount(parts[graph.rows] * count + parts[neighbours], size / 2,
                       count * count).reshape(count, count)
  np.fill_diagonal(result, 0)
  return result


def _exchange(sent: np.ndarray, apart: np.ndarray, misfits: np.ndarray,
              shares: np.ndarray, num_workers: int) -> np.ndarray:
  """int [k], the new number of each part, by pairwise exchange."""
  order = np.arange(len(shares))

  def cost() -> float:
    return ((sent * apart[np.ix_(order, order)]).sum()
            + misfits[np.arange(len(order)), order].sum())

  lowest, improved = cost(), True
  while improved:
    improved = False
    for a in range(num_workers):
      for b in range(a):
        if abs(shares[order[a]]
               - shares[order[b]]) > _EQUAL_SHARES * (shares.max()):
          continue
        order[[a, b]] = order[[b, a]]
        now = cost()
        if now < lowest * (1 - 1e-9):
          lowest, improved = now, True
        else:
          order[[a, b]] = order[[b, a]]
  return order
