"""Placements that depend only on the coordinates of ops.

The axes are the coordinates of `graph.structure.coordinates`, such as layer and
time step (`segment`), and the number of a variable among those of its layer. A
map assigns a device to each value of one axis or to each pair of values of two:

* blocks: consecutive values of an axis share a device;
* turns: values get the devices in turn;
* grids: blocks or turns along two axes, on rows and columns of devices;
* skewed maps, such as `(layer - segment) mod k`: the device changes along both
  axes, as in pipelines and wavefronts.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Iterator

import numpy as np

from gdp_grappler import products
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import axes
from gdp_grappler.graph.structure import coordinates as coordinates_lib

# Consecutive values of an axis that get the same device before the next device
# has its turn.
_STRIDES = (1, 2, 4, 8, 16)
# Axes of time. No map combines two of them.
_WHEN = ('segment', 'repetition')
# The part of a recurrent layer. No map uses this axis: the parts of one layer
# in one time step wait for each other.
_LAYER_PART = 'layer_part'
# Rows for which cuts are computed at once; a block fits into a CPU cache.
_ROWS = 32
# Edges for which cuts are computed at once; a block fits into a CPU cache.
_EDGES = 4096


@dataclasses.dataclass(frozen=True, eq=False)
class Tiles:
  """U tiles: sets of groups with equal coordinates, which share a device.

  Attributes:
    groups: int [G], the tile of each group.
    axes: int [U] by name of the axis, coordinate of each tile, from 0.
    edges: int [M, 2], pairs of tiles; the first tile of a pair sends tensors to
      the second tile.
    edge_bytes: float64 [M], bytes sent; a tensor counts once per receiving
      tile.
    edge_tensors: int [M], number of tensors sent.
  """

  groups: np.ndarray
  axes: dict[str, np.ndarray]
  edges: np.ndarray
  edge_bytes: np.ndarray
  edge_tensors: np.ndarray

  def totals(self, weights: np.ndarray) -> np.ndarray:
    """float64 [U], sums of weights over the groups of each tile.

    Args:
      weights: float64 [G].
    """
    return np.bincount(self.groups, weights, self.num_tiles)

  @property
  def num_tiles(self) -> int:
    """U, the number of tiles."""
    return int(self.groups.max()) + 1

  def loads(self, rows: np.ndarray, weights: np.ndarray,
            count: int) -> np.ndarray:
    """float64 [K, count], sums of weights over the tiles of each part.

    Args:
      rows: int [K, U], the part of each tile.
      weights: float64 [U].
      count: Number of parts.
    """
    result = np.empty((len(rows), count))
    for load, row in zip(result, rows):
      load[:] = np.bincount(row, weights, count)
    return result

  def cuts(self, rows: np.ndarray) -> np.ndarray:
    """float64 [2, K], bytes and tensors that parts send to each other.

    Args:
      rows: int [K, U], the part of each tile.
    """
    # The sums are of integers, so the order of summation does not matter.
    amounts = np.stack([self.edge_bytes, self.edge_tensors])
    result = np.zeros((2, len(rows)))
    for own in _stretches(len(rows), _ROWS):
      parts = np.ascontiguousarray(rows[own].T)
      for edges in _stretches(len(self.edges), _EDGES):
        source, target = self.edges[edges].T
        crossing = parts.take(source, 0) != parts.take(target, 0)
        result[:, own] += products.product(amounts[:, edges], crossing)
    return result

  def scores(self, rows: np.ndarray, work: np.ndarray, speeds: np.ndarray,
             link: tuple[float, float]) -> np.ndarray:
    """float64 [2, K], two scores of maps; the lowest is the most promising.

    The first score is the work of the busiest part, divided by its speed. The
    second score adds the seconds of all transfers between parts, divided by the
    number of parts.

    Args:
      rows: int [K, U], the part of each tile.
      work: float64 [U], work of each tile.
      speeds: float64 [k], speed of each part over the mean speed of a device.
      link: Mean seconds of latency, and mean seconds per byte, between parts.
    """
    count = len(speeds)
    busiest = (self.loads(rows, work, count) / speeds).max(axis=1)
    latency_s, s_per_byte = link
    size, tensors = self.cuts(rows)
    sent_s = size * s_per_byte + tensors * latency_s
    return np.stack([busiest, busiest + sent_s / count])

  def induced(self, own: np.ndarray) -> Tiles:
    """The tiles `own` and their groups alone, with new numbers from 0.

    Args:
      own: int [W], numbers of the tiles to keep.
    """
    number = np.full(self.num_tiles, -1)
    number[own] = np.arange(len(own))
    groups, edges = number[self.groups], number[self.edges]
    inside = (edges >= 0).all(axis=1)
    axes = {
        name: np.unique(values[own], return_inverse=True)[1].reshape(-1)
        for name, values in self.axes.items()
    }
    return Tiles(groups[groups >= 0], axes, edges[inside],
                 self.edge_bytes[inside], self.edge_tensors[inside])


def tiles(graph: op_graph.OpGraph,
          coordinates: coordinates_lib.Coordinates) -> Tiles | None:
  """The tiles of a graph's G groups.

  Args:
    graph: G groups.
    coordinates: Coordinates of the graph.

  Returns:
    None if all groups have the same coordinates.
  """
  columns = axes.of(coordinates)
  columns.pop(_LAYER_PART, None)
  if not columns:
    return None
  values, groups = unique_rows.distinct(list(columns.values()))
  return Tiles(groups, dict(zip(columns, values)), *_edges(graph, groups))


def maps(of: Tiles, work: np.ndarray, shares: np.ndarray) -> np.ndarray:
  """int [K, U], the part of each tile in K different maps.

  Args:
    of: U tiles.
    work: float64 [U], work of each tile, which the maps balance.
    shares: float64 [k], share of the work that each part should get; sum 1.

  Returns:
    An array of the narrowest integer type, because there are many rows.
  """
  # A type for numbers below k and for the sum or difference of two.
  kind = np.min_scalar_type(-2 * len(shares))
  axes = {name: _Axis(values, work, kind) for name, values in of.axes.items()}
  rows = {row.tobytes(): row for row in _all(axes, shares)}
  return np.array(list(rows.values()), kind).reshape(-1, len(work))


def _all(axes: dict[str, _Axis], shares: np.ndarray) -> Iterator[np.ndarray]:
  for axis in axes.values():
    yield from axis.along(shares)
  for first, second in itertools.combinations(axes, 2):
    if first in _WHEN and second in _WHEN:
      continue
    yield from _grids(axes[first], axes[second], shares)
    yield from _skewed(axes[first], axes[second], len(shares))


def _grids(first: _Axis, second: _Axis,
           shares: np.ndarray) -> Iterator[np.ndarray]:
  count = len(shares)
  for rows in range(2, count // 2 + 1):
    if count % rows:
      continue
    of_rows = shares.reshape(rows, -1).sum(axis=1)
    of_columns = np.full(count // rows, rows / count)
    for a, b in itertools.product(first.along(of_rows),
                                  second.along(of_columns)):
      yield a * len(of_columns) + b


def _skewed(first: _Axis, second: _Axis, count: int) -> Iterator[np.ndarray]:
  for a, b in itertools.product(first.turns(count), second.turns(count)):
    total, rest = a + b, a - b
    # A comparison takes less time than a division.
    yield np.where(total < count, total, total - count)
    yield np.where(rest < 0, rest + count, rest)


class _Axis:
  """Maps along one axis of U tiles; each map is an array [U] of parts."""

  def __init__(self, values: np.ndarray, work: np.ndarray,
               kind: np.dtype) -> None:
    """Finds the middle of the work of each value of the axis.

    Args:
      values: int [U], coordinate of each tile.
      work: float64 [U], work of each tile.
      kind: Type of the maps.
    """
    self._values, self._kind = values, kind
    by_value = np.bincount(values, work)
    self._middle = ((np.cumsum(by_value) - by_value / 2)
                    / max(by_value.sum(), 1e-300))

  def along(self, shares: np.ndarray) -> Iterator[np.ndarray]:
    """Blocks, then turns."""
    yield self._blocks(shares)
    for stride in _STRIDES:
      if stride * len(shares) < len(self._middle):
        yield self._in_turn(stride, len(shares))

  def turns(self, count: int) -> Iterator[np.ndarray]:
    """Turns with growing strides, then blocks."""
    for stride in _STRIDES:
      if stride <= max((len(self._middle) - 1) // 2, 1):
        yield self._in_turn(stride, count)
    yield self._blocks(np.full(count, 1 / count))

  def _in_turn(self, stride: int, count: int) -> np.ndarray:
    parts = np.arange(len(self._middle)) // stride % count
    return parts.astype(self._kind)[self._values]

  def _blocks(self, shares: np.ndarray) -> np.ndarray:
    """Blocks with about the given shares of the work.

    The middle of the work of a value determines the block of the value.
    """
    blocks = np.searchsorted(np.cumsum(shares)[:-1], self._middle, 'right')
    return blocks.astype(self._kind)[self._values]


def _stretches(end: int, length: int) -> Iterator[slice]:
  """Slices of `length` that cover 0 .. end - 1."""
  for start in range(0, end, length):
    yield slice(start, start + length)


def _edges(graph: op_graph.OpGraph,
           of_group: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Pairs of tiles, bytes and tensors; see `Tiles`."""
  data = graph.edge_tensors >= 0
  source, target = of_group[graph.groups[graph.edges[data]]].T
  apart = source != target
  count = int(of_group.max()) + 1
  # A tensor has one source, so each key belongs to one pair of tiles.
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
