"""Placements made of coordinates alone.

Axes are coordinates of `structure.coordinates`, and the place of a variable
among those of its layer. One axis is cut into blocks or dealt out in turn; two
make a grid, or a skewed map in which devices take turns along both at once, as
in pipelines and wavefronts: `(layer - segment) mod k`.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Iterator

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import axes
from gdp_grappler.graph.structure import coordinates as coordinates_lib

# Dealt out one by one, in twos, ...
_STRIDES = (1, 2, 4, 8, 16)
# Axes that say when, and those that say what.
_WHEN = ('segment', 'repetition')
# No map deals it out: what is in one step of one layer waits for each other.
_STRAND = 'strand'
# Rows and edges that are looked at in one go: what fits into a cache.
_ROWS, _EDGES = 32, 4096


@dataclasses.dataclass(frozen=True, eq=False)
class Cells:
  """U sets of groups with the same coordinates, which nothing here parts.

  Attributes:
    groups: int [G], the cell of each group.
    axes: int [U] each by name, from 0; none is missing a value.
    edges: int [M, 2], pairs of cells that send something.
    edge_bytes: float64 [M], how much; a tensor counts once per cell.
    edge_tensors: int [M], how many tensors.
  """

  groups: np.ndarray
  axes: dict[str, np.ndarray]
  edges: np.ndarray
  edge_bytes: np.ndarray
  edge_tensors: np.ndarray

  def totals(self, weights: np.ndarray) -> np.ndarray:
    """float64 [U], sums of weights of groups [G]."""
    return np.bincount(self.groups, weights, self.num_cells)

  @property
  def num_cells(self) -> int:
    """U."""
    return int(self.groups.max()) + 1

  def loads(self, rows: np.ndarray, weights: np.ndarray,
            count: int) -> np.ndarray:
    """float64 [K, count], the weights of cells [U] in each part.

    Args:
      rows: int [K, U], parts of cells.
      weights: float64 [U].
      count: Of parts.
    """
    result = np.empty((len(rows), count))
    for load, row in zip(result, rows):
      load[:] = np.bincount(row, weights, count)
    return result

  def cuts(self, rows: np.ndarray) -> np.ndarray:
    """float64 [2, K], bytes and tensors that parts send to each other.

    Args:
      rows: int [K, U], parts of cells.
    """
    # Sums of integers: the order of summing does not show.
    amounts = np.stack([self.edge_bytes, self.edge_tensors])
    result = np.zeros((2, len(rows)))
    for own in _stretches(len(rows), _ROWS):
      parts = np.ascontiguousarray(rows[own].T)
      for edges in _stretches(len(self.edges), _EDGES):
        source, target = self.edges[edges].T
        crossing = parts.take(source, 0) != parts.take(target, 0)
        result[:, own] += amounts[:, edges] @ crossing.astype(np.float64)
    return result

  def induced(self, own: np.ndarray) -> Cells:
    """Some of the cells, which get numbers from 0, without groups.

    Args:
      own: int [W], which.
    """
    number = np.full(len(next(iter(self.axes.values()))), -1)
    number[own] = np.arange(len(own))
    edges = number[self.edges]
    inside = (edges >= 0).all(axis=1)
    axes = {
        name: np.unique(values[own], return_inverse=True)[1].reshape(-1)
        for name, values in self.axes.items()
    }
    return Cells(np.zeros(0, int), axes, edges[inside], self.edge_bytes[inside],
                 self.edge_tensors[inside])


def cells(graph: op_graph.OpGraph,
          coordinates: coordinates_lib.Coordinates) -> Cells | None:
  """The cells of a graph's G groups; None if coordinates tell none apart."""
  columns = axes.of(coordinates)
  columns.pop(_STRAND, None)
  if not columns:
    return None
  values, groups = unique_rows.distinct(list(columns.values()))
  return Cells(groups, dict(zip(columns, values)), *_edges(graph, groups))


class Maps:
  """Ways to share cells out over devices."""

  def __init__(self, of: Cells, work: np.ndarray) -> None:
    """Prepares.

    Args:
      of: U cells.
      work: float64 [U], what is to be shared out evenly.
    """
    self._axes, self._work = of.axes, work

  def rows(self, shares: np.ndarray) -> np.ndarray:
    """int [K, U], the part of each cell, no two rows alike.

    Args:
      shares: float64 [k], work that each of the parts should get; sum 1.

    Returns:
      Of a type that is as narrow as can be: there are many.
    """
    kind = _kind(len(shares))
    found = {row.tobytes(): row for row in self._all(shares)}
    return np.array(list(found.values()), kind).reshape(-1, len(self._work))

  def _all(self, shares: np.ndarray) -> Iterator[np.ndarray]:
    for axis in self._axes:
      yield from self._along(axis, shares, _kind(len(shares)))
    for first, second in itertools.combinations(self._axes, 2):
      if first in _WHEN and second in _WHEN:
        continue
      yield from self._grids(first, second, shares)
      yield from self._skewed(first, second, len(shares))

  def _along(self, axis: str, shares: np.ndarray,
             kind: np.dtype) -> Iterator[np.ndarray]:
    """Blocks, and turns of one, two, ..."""
    values, count = self._axes[axis], len(shares)
    scale = np.arange(int(values.max()) + 1)
    yield self._blocks(axis, shares, kind)
    for stride in _STRIDES:
      if stride * count < len(scale):
        yield (scale // stride % count).astype(kind)[values]

  def _grids(self, first: str, second: str,
             shares: np.ndarray) -> Iterator[np.ndarray]:
    count, kind = len(shares), _kind(len(shares))
    for rows in range(2, count // 2 + 1):
      if count % rows:
        continue
      of_rows = shares.reshape(rows, -1).sum(axis=1)
      of_columns = np.full(count // rows, rows / count)
      for a, b in itertools.product(self._along(first, of_rows, kind),
                                    self._along(second, of_columns, kind)):
        yield a * len(of_columns) + b

  def _skewed(self, first: str, second: str,
              count: int) -> Iterator[np.ndarray]:
    for a, b in itertools.product(self._steps(first, count),
                                  self._steps(second, count)):
      total, rest = a + b, a - b
      # Cheaper than a division of each.
      yield np.where(total < count, total, total - count)
      yield np.where(rest < 0, rest + count, rest)

  def _steps(self, axis: str, count: int) -> Iterator[np.ndarray]:
    """An axis on coarser and coarser scales, by turns of `count`."""
    values, kind = self._axes[axis], _kind(count)
    scale = np.arange(int(values.max()) + 1)
    for stride in _STRIDES:
      if stride <= max(scale[-1] // 2, 1):
        yield (scale // stride % count).astype(kind)[values]
    yield self._blocks(axis, np.full(count, 1 / count), kind)

  def _blocks(self, axis: str, shares: np.ndarray,
              kind: np.dtype) -> np.ndarray:
    """int [U], cut where the work so far reaches the shares so far.

    A value goes where the middle of its work falls.
    """
    values = self._axes[axis]
    work = np.bincount(values, self._work)
    middle = (np.cumsum(work) - work / 2) / max(work.sum(), 1e-300)
    blocks = np.searchsorted(np.cumsum(shares)[:-1], middle, 'right')
    return blocks.astype(kind)[values]


def _kind(count: int) -> np.dtype:
  """Holds parts below `count`, and sums and differences of two."""
  return np.min_scalar_type(-2 * count)


def _stretches(end: int, length: int) -> Iterator[slice]:
  """Of 0 .. end - 1, in turn."""
  for start in range(0, end, length):
    yield slice(start, start + length)


def _edges(graph: op_graph.OpGraph,
           of_group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Pairs of cells, bytes and tensors; see `Cells`."""
  data = graph.edge_tensors >= 0
  source, target = of_group[graph.groups[graph.edges[data]]].T
  apart = source != target
  count = int(of_group.max()) + 1
  # A tensor has one source: each of these keys is of one pair of cells.
  keys, first = np.unique(
      graph.edge_tensors[data][apart].astype(np.int64) * count + target[apart],
      return_index=True)
  size = graph.tensor_bytes[keys // count]
  pairs, where = np.unique(source[apart][first] * count + keys % count,
                           return_inverse=True)
  where = where.reshape(-1)
  return (np.stack([pairs // count, pairs % count],
                   axis=1), np.bincount(where, size, len(pairs)),
          np.bincount(where, minlength=len(pairs)))
