"""Moves what exceeds a memory to where there is room, as cheaply as it can be.

For placers whose fastest proposals do not fit. As in a pass of Fiduccia and
Mattheyses, "A linear-time heuristic for improving network partitions", DAC
1982, one part of the graph after the other changes places, the one first that
costs least for each byte that is too much. What it costs is the time that its
ops take longer and that its tensors then travel, whatever runs beside; so the
host, which has room, gets what no accelerator can hold. What a memory really
holds at its peak is asked again of the evaluator, until all fit.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.memory import memory_estimate

# How many units to make of the groups; finer than all of them are the groups
# themselves, where they are not too many.
_UNITS = 60, 250, 1000
_MOST_PARTS = 3000
# How often the evaluator is asked for the peaks of what was moved, and what is
# moved beyond an excess, as a share of the memory.
_ROUNDS = 8
_MARGIN = 2e-3


@dataclasses.dataclass(eq=False)
class _Parts:
  """U parts of the groups of one placement, each on one device.

  Attributes:
    of_groups: int [G].
    devices: int [U], where they are; changes.
    size: float64 [U], bytes.
    seconds: float64 [U, D].
    allowed: bool [U, D].
    edges: Starts [U + 1], neighbours and bytes, as of `GroupGraph.adjacency`.
    sent: float64 [U, D], bytes to and from what is on a device; changes.
  """

  of_groups: np.ndarray
  devices: np.ndarray
  size: np.ndarray
  seconds: np.ndarray
  allowed: np.ndarray
  edges: tuple[np.ndarray, np.ndarray, np.ndarray]
  sent: np.ndarray

  def move(self, part: int, device: int) -> None:
    starts, neighbours, sent = self.edges
    row = slice(starts[part], starts[part + 1])
    self.sent[neighbours[row], self.devices[part]] -= sent[row]
    self.sent[neighbours[row], device] += sent[row]
    self.devices[part] = device


class MemoryRepair:
  """Makes placements of one problem fit."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._problem = problem
    graph, cluster = problem.graph, problem.cluster
    self._graph = group_graph.build(problem, np.array(cluster.accelerators))
    self._size = memory_estimate.group_bytes(graph,
                                             memory_estimate.alive_share(graph))
    self._seconds = problem.group_seconds
    self._s_per_byte = 1 / cluster.link_arrays[1]

  def fitted(self, devices: np.ndarray) -> np.ndarray:
    """int32 [K', G], placements with less in the memories that they exceed.

    Each of those that are given, moved in parts of several sizes. Most fit.

    Args:
      devices: int [K, G].
    """
    rows = np.repeat(devices, len(self._levels), axis=0)
    levels = np.tile(np.arange(len(self._levels)), len(devices))
    room = self._problem.cluster.pool_bytes
    active = np.arange(len(rows))
    for _ in range(_ROUNDS):
      # Peaks are those of the plain step: no draws of luck are needed.
      peaks = self._problem.evaluator.price_groups(self._problem.graph,
                                                   rows[active],
                                                   ceiling_s=None).peak_bytes
      moved = [(row, self._relieved(rows[row], levels[row], peak))
               for row, peak in zip(active, peaks) if (peak > room).any()]
      active = np.array(
          [row for row, made in moved if (made != rows[row]).any()], int)
      if not active.size:
        break
      for row, made in moved:
        rows[row] = made
    return rows

  @functools.cached_property
  def _levels(self) -> list[np.ndarray]:
    """int [G] each, units of groups from coarse to fine."""
    problem, graph = self._problem, self._problem.graph
    result = coarsening.levels(graph, problem.allowed, problem.op_seconds,
                               _UNITS)
    if graph.num_groups <= _MOST_PARTS:
      result.append(np.arange(graph.num_groups))
    return result

  def _relieved(self, devices: np.ndarray, level: int,
                peaks: np.ndarray) -> np.ndarray:
    """int32 [G]; peaks are int [P] of the devices [G]."""
    parts = self._parts(devices, self._levels[level])
    pools = self._problem.cluster.memory_pools
    room = self._problem.cluster.pool_bytes.astype(float)
    load = peaks.astype(float)
    # What was moved less than it should be moves again with the next peaks.
    for _ in range(2 * len(parts.devices)):
      excess = load - room
      fullest = int((excess / np.maximum(room, 1)).argmax())
      if excess[fullest] <= 0:
        break
      move = self._cheapest(parts, fullest,
                            excess[fullest] + _MARGIN * room[fullest],
                            room - load)
      if move is None:
        break
      part, device = move
      load[pools[parts.devices[part]]] -= parts.size[part]
      load[pools[device]] += parts.size[part]
      parts.move(part, device)
    return parts.devices[parts.of_groups].astype(np.int32)

  def _cheapest(self, parts: _Parts, pool: int, excess: float,
                free: np.ndarray) -> tuple[int, int] | None:
    """A part that leaves a pool, and its new device; None if there is none.

    Args:
      parts: U parts.
      pool: To make room in.
      excess: Bytes that it has too much.
      free: float64 [P], bytes.
    """
    pools = self._problem.cluster.memory_pools
    there = np.flatnonzero((pools[parts.devices] == pool) & (parts.size > 0))
    if not there.size:
      return None
    size = parts.size[there, None]
    fits = parts.allowed[there] & (pools != pool) & (size <= free[pools])
    if not fits.any():
      return None
    cost_s = parts.seconds[there] + parts.sent[there] @ self._s_per_byte
    cost_s = cost_s - cost_s[np.arange(len(there)), parts.devices[there]][:,
                                                                          None]
    by_byte = np.where(fits, cost_s / np.minimum(size, excess), np.inf)
    row, device = np.unravel_index(by_byte.argmin(), by_byte.shape)
    return int(there[row]), int(device)

  def _parts(self, devices: np.ndarray, units: np.ndarray) -> _Parts:
    """What each unit has on each device."""
    count = self._problem.cluster.num_devices
    keys, of_groups = np.unique(
        units.astype(np.int64) * count + devices, return_inverse=True)
    total, own = len(keys), keys % count
    seconds = np.stack(
        [np.bincount(of_groups, column, total) for column in self._seconds.T],
        axis=1)
    allowed = np.ones((total, count), bool)
    np.logical_and.at(allowed, of_groups, self._problem.allowed)
    _, neighbours, sent = self._graph.adjacency
    source, target = of_groups[self._graph.rows], of_groups[neighbours]
    apart = source != target
    pairs, where = np.unique(source[apart] * total + target[apart],
                             return_inverse=True)
    sent = np.bincount(where, sent[apart], len(pairs))
    starts = np.searchsorted(pairs, np.arange(total + 1) * total)
    by_device = np.bincount(pairs // total * count + own[pairs % total], sent,
                            total * count).reshape(total, count)
    return _Parts(of_groups, own, np.bincount(of_groups, self._size, total),
                  seconds, allowed, (starts, pairs % total, sent), by_device)
