"""Repairs placements that overflow memories, at a low cost in time.

The repair moves one part of the graph after the other out of an overfull
memory, as in a pass of Fiduccia and Mattheyses, "A linear-time heuristic for
improving network partitions", DAC 1982. The part with the least cost per byte
of overflow moves first. The cost is the time that the ops of the part take
longer on the new device, plus the time that the tensors of the part travel. The
cost does not consider ops that run at the same time. The host has the most
room, so the host gets the parts that no accelerator can hold.

Sizes of parts are estimates. So the evaluator computes the true peaks of the
memories after each round of moves, until the placement fits.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import products
from gdp_grappler.graph import coarsening
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.memory import memory_estimate

# Numbers of units into which the groups are joined. A repair is tried with each
# of these numbers that is well below the number of groups.
_UNITS = 60, 250, 1000
# Largest number of groups for which a repair is also tried with single groups.
_MOST_PARTS = 3000
# Rounds of moves; before each, the evaluator computes the peaks of memories.
_ROUNDS = 8
# Bytes, as a share of the memory, that are added to the overflow when the cost
# per byte of a move is computed.
_MARGIN = 2e-3


@dataclasses.dataclass(eq=False)
class _Parts:
  """U parts of the groups of one placement, each on one device.

  Attributes:
    of_groups: int [G], the part of each group.
    devices: int [U], the device of each part; `move` changes it.
    size: float64 [U], bytes.
    seconds: float64 [U, D], seconds of each part on each device.
    allowed: bool [U, D], devices that a part may have.
    edges: Starts [U + 1], neighbours and bytes; see `GroupGraph.adjacency`.
    sent: float64 [U, D], bytes that a part exchanges with the parts on each
      device; `move` changes it.
  """

  of_groups: np.ndarray
  devices: np.ndarray
  size: np.ndarray
  seconds: np.ndarray
  allowed: np.ndarray
  edges: tuple[np.ndarray, np.ndarray, np.ndarray]
  sent: np.ndarray

  def move(self, part: int, device: int) -> None:
    """Moves a part to a device."""
    starts, neighbours, sent = self.edges
    row = slice(starts[part], starts[part + 1])
    self.sent[neighbours[row], self.devices[part]] -= sent[row]
    self.sent[neighbours[row], device] += sent[row]
    self.devices[part] = device


class MemoryRepair:
  """Repairs placements of one problem that overflow memories."""

  def __init__(self, problem: placer_lib.Problem) -> None:
    self._problem = problem
    graph, cluster = problem.graph, problem.cluster
    self._graph = group_graph.build(graph, problem.busy_seconds,
                                    np.array(cluster.accelerators))
    self._size = memory_estimate.group_bytes(graph,
                                             memory_estimate.alive_share(graph))
    self._seconds = problem.group_seconds
    self._s_per_byte = 1 / cluster.link_arrays[1]

  def fitted(self, devices: np.ndarray,
             deadline: deadlines.Deadline = deadlines.NEVER) -> np.ndarray:
    """int32 [K', G], repaired placements; most of them fit.

    Each placement is repaired several times, with parts of different sizes. A
    repair with few, large parts is quick. So every placement is first repaired
    with the largest parts, in case there is little time. The result is empty if
    the configuration repairs nothing (`FitConfig.repairs`).

    Args:
      devices: int [K, G], placements that overflow.
      deadline: After this time only the first repair begins. Repairs that have
        begun stop, and the result has their unfinished placements.
    """
    if not search_config.DEFAULT.fit.repairs:
      devices = devices[:0]
    rows = np.tile(devices, (len(self._levels), 1))
    levels = np.repeat(np.arange(len(self._levels)), len(devices))
    room = self._problem.cluster.pool_bytes
    active = np.arange(len(rows))
    for made_rounds in range(_ROUNDS):
      if made_rounds and deadline.passed:
        break
      # A price with `ceiling_s=None` gives the peaks of all placements.
      peaks = self._problem.evaluator.price_groups(self._problem.graph,
                                                   rows[active],
                                                   ceiling_s=None).peak_bytes
      moved = [(row, self._repair_round(rows[row], levels[row], peak))
               for index, (row, peak) in enumerate(zip(active, peaks))
               if (peak > room).any() and not (index and deadline.passed)]
      active = np.array(
          [row for row, made in moved if (made != rows[row]).any()], int)
      if not active.size:
        break
      for row, made in moved:
        rows[row] = made
    return rows

  @functools.cached_property
  def _levels(self) -> list[np.ndarray]:
    """int [G] each, the unit of each group, from coarse to fine units."""
    problem, graph = self._problem, self._problem.graph
    result = coarsening.levels(graph, problem.allowed, problem.op_seconds,
                               _UNITS)
    if graph.num_groups <= _MOST_PARTS:
      result.append(np.arange(graph.num_groups))
    return result

  def _repair_round(self, devices: np.ndarray, level: int,
                    peaks: np.ndarray) -> np.ndarray:
    """int32 [G], the placement after one round of moves.

    Args:
      devices: int [G], a placement that overflows.
      level: Index of `_levels`.
      peaks: int [P], peak of each memory, in bytes.
    """
    parts = self._parts(devices, self._levels[level])
    pools = self._problem.cluster.memory_pools
    room = self._problem.cluster.pool_bytes.astype(float)
    load = peaks.astype(float)
    # Parts may move to and fro forever, so the number of moves is limited. The
    # next round goes on with the repair.
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
    """The part whose move out of a memory costs the least, and its new device.

    Args:
      parts: U parts.
      pool: The memory that overflows.
      excess: Bytes of the overflow, plus a margin. The cost of a move is
        divided by the bytes of the part, but at most by this number.
      free: float64 [P], free bytes of each memory.

    Returns:
      None if no part of that memory fits into another memory.
    """
    pools = self._problem.cluster.memory_pools
    there = np.flatnonzero((pools[parts.devices] == pool) & (parts.size > 0))
    if not there.size:
      return None
    size = parts.size[there, None]
    fits = parts.allowed[there] & (pools != pool) & (size <= free[pools])
    if not fits.any():
      return None
    cost_s = parts.seconds[there] + products.product(parts.sent[there],
                                                     self._s_per_byte)
    cost_s = cost_s - cost_s[np.arange(len(there)), parts.devices[there]][:,
                                                                          None]
    by_byte = np.where(fits, cost_s / np.minimum(size, excess), np.inf)
    row, device = np.unravel_index(by_byte.argmin(), by_byte.shape)
    return int(there[row]), int(device)

  def _parts(self, devices: np.ndarray, units: np.ndarray) -> _Parts:
    """The parts of a placement: the groups of one unit on one device each.

    Args:
      devices: int [G], the placement.
      units: int [G], the unit of each group.
    """
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
