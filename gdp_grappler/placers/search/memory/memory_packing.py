"""Packs groups into memories that are almost full, exactly where they are few.

For placers whose proposals do not fit and cannot be mended by moving one part
after the other: where a memory holds three variables, another set of three may
be the only one that fits. The largest groups are tried first, each in the
memory that it fills best, and taken back where the rest no longer fits
(branch and bound, as for bin packing in S. Martello and P. Toth: Knapsack
Problems, 1990, chapter 8), with a limit on how often. Time is not looked at:
searches go on from what fits.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.memory import memory_estimate

# Groups that are placed on trial; those smaller go where there is room.
_MOST_ITEMS = 200
# How often a group is tried somewhere, for one packing and for all of them: a
# second.
_TRIALS, _TRIALS_IN_ALL = 5_000, 15_000
_NOWHERE = -1
# How often room is looked for by bisection, and how often peaks are asked for.
_BISECTIONS, _ROUNDS = 5, 4


def packed(problem: placer_lib.Problem) -> np.ndarray:
  """int32 [K, G], placements that may fit, K may be 0; they are legal.

  Each fills all memories to about the same share. After the evaluator has said
  what they hold at their peaks, those that were too full get less.

  Args:
    problem: G groups.
  """
  graph, room = problem.graph, problem.cluster.pool_bytes.astype(float)
  found: list[np.ndarray] = []
  for sizes in _sizes(graph):
    packer, target = _Packer(problem, sizes), room
    for _ in range(_ROUNDS):
      rows = packer.evenly(target)
      if not rows:
        break
      found += rows
      prices = problem.evaluator.price_groups(graph, np.stack(rows),
                                              ceiling_s=None)
      if prices.valid.any():
        return np.stack(found)
      # Besides what was packed a memory holds other tensors for a while.
      target = room - np.maximum(prices.peak_bytes[0] - packer.load(rows[0]), 0)
  return np.array(found, np.int32).reshape(-1, graph.num_groups)


@dataclasses.dataclass(frozen=True, eq=False)
class _Sizes:
  """What groups hold, in bytes.

  Attributes:
    kept: float64 [G], for the whole step.
    passing: float64 [G], for a while. In a memory the largest one counts.
  """

  kept: np.ndarray
  passing: np.ndarray


def _sizes(graph: op_graph.OpGraph) -> list[_Sizes]:
  """As if one op ran at a time; and as if all tensors lived as one shares."""
  touched = np.bincount(graph.tensor_ops, graph.tensor_bytes, graph.num_ops)
  data = graph.edge_tensors >= 0
  touched += np.bincount(graph.edges[data, 1],
                         graph.tensor_bytes[graph.edge_tensors[data]],
                         graph.num_ops)
  passing = np.zeros(graph.num_groups)
  np.maximum.at(passing, graph.groups, touched)
  share = memory_estimate.alive_share(graph)
  return [
      _Sizes(memory_estimate.group_bytes(graph, 0.), passing),
      _Sizes(memory_estimate.group_bytes(graph, share), np.zeros_like(passing))
  ]


class _Packer:
  """Packs the groups of one problem, which have sizes."""

  def __init__(self, problem: placer_lib.Problem, sizes: _Sizes) -> None:
    self._kept, self._passing = sizes.kept, sizes.passing
    self._pools = problem.cluster.memory_pools
    self._num_pools = len(problem.cluster.pool_bytes)
    self._homes = _homes(problem)
    self._trials_left = _TRIALS_IN_ALL
    order = np.argsort(-(sizes.kept + sizes.passing), kind='stable')
    self._items = order[:_MOST_ITEMS].tolist()
    self._others = order[_MOST_ITEMS:].tolist()
    # Pools that nobody can tell apart, but for what is in them.
    _, self._alike = np.unique(self._homes >= 0, axis=1, return_inverse=True)

  def load(self, devices: np.ndarray) -> np.ndarray:
    """float64 [P], bytes that a placement [G] puts into each memory."""
    pools = self._pools[devices]
    passing = np.zeros(self._num_pools)
    np.maximum.at(passing, pools, self._passing)
    return np.bincount(pools, self._kept, self._num_pools) + passing

  def evenly(self, room: np.ndarray) -> list[np.ndarray]:
    """Placements, int32 [G]; the one that leaves most room first.

    Args:
      room: float64 [P], bytes to be filled at most.
    """
    first = self._packed(room)
    rows = [] if first is None else [first]
    least, most = 0., 1.
    for _ in range(_BISECTIONS if rows else 0):
      fill = (least + most) / 2
      row = self._packed(fill * room)
      if row is None:
        least = fill
      else:
        rows.insert(0, row)
        most = fill
    return rows

  def _packed(self, room: np.ndarray) -> np.ndarray | None:
    """int32 [G], or None if none was found that fills memories no more."""
    if self._kept.sum() > room.sum():
      return None
    memories = _Memories(room)
    chosen: list[int] = []
    waiting = [self._choices(0, memories)]
    for _ in range(min(_TRIALS, self._trials_left)):
      self._trials_left -= 1
      if len(chosen) == len(self._items):
        return self._with_others(chosen, memories)
      while not waiting[-1]:
        waiting.pop()
        if not waiting:
          return None
        memories.take_back(chosen.pop())
      group = self._items[len(chosen)]
      chosen.append(waiting[-1].pop(0))
      memories.add(chosen[-1], self._kept[group], self._passing[group])
      waiting.append(self._choices(len(chosen), memories))
    return None

  def _choices(self, depth: int, memories: _Memories) -> list[int]:
    """Memories with room for an item; the one that it fills best first."""
    if depth == len(self._items):
      return []
    group = self._items[depth]
    fitting: dict[tuple[int, float, float], int] = {}
    for pool in range(self._num_pools):
      left = memories.left(pool, self._kept[group], self._passing[group])
      if left >= 0 and self._homes[group, pool] != _NOWHERE:
        fitting.setdefault((int(self._alike[pool]), *memories.state[pool]),
                           pool)
    return sorted(fitting.values(), key=lambda pool: memories.left(pool, 0, 0))

  def _with_others(self, chosen: list[int],
                   memories: _Memories) -> np.ndarray | None:
    """Devices of all; the small ones are where most room is left."""
    result = np.zeros(len(self._kept), np.int32)
    for group, pool in zip(self._items, chosen):
      result[group] = self._homes[group, pool]
    for group in self._others:
      kept, passing = self._kept[group], self._passing[group]
      pool = max(
          np.flatnonzero(self._homes[group] != _NOWHERE).tolist(),
          key=lambda pool: memories.left(pool, kept, passing))
      if memories.left(pool, kept, passing) < 0:
        return None
      memories.add(pool, kept, passing)
      result[group] = self._homes[group, pool]
    return result


class _Memories:
  """What is in each memory.

  Attributes:
    state: Bytes not kept, and the most that is there for a while.
  """

  def __init__(self, room: np.ndarray) -> None:
    self.state = [(bytes_, 0.) for bytes_ in room.tolist()]
    self._before: list[tuple[float, float]] = []

  def left(self, pool: int, kept: float, passing: float) -> float:
    """Bytes that are left if that came."""
    free, most = self.state[pool]
    return free - kept - max(most, passing)

  def add(self, pool: int, kept: float, passing: float) -> None:
    """Puts something into a memory."""
    self._before.append(self.state[pool])
    free, most = self.state[pool]
    self.state[pool] = free - kept, max(most, passing)

  def take_back(self, pool: int) -> None:
    """Undoes the last `add`, which was to this memory."""
    self.state[pool] = self._before.pop()


def _homes(problem: placer_lib.Problem) -> np.ndarray:
  """int [G, P], the fastest device of each memory for a group, or -1."""
  graph, cluster = problem.graph, problem.cluster
  seconds = problem.group_seconds
  seconds = np.where(problem.allowed, seconds, np.inf)
  result = np.full((graph.num_groups, len(cluster.pool_bytes)), _NOWHERE)
  for pool in range(result.shape[1]):
    devices = np.flatnonzero(cluster.memory_pools == pool)
    fastest = devices[seconds[:, devices].argmin(axis=1)]
    legal = problem.allowed[np.arange(graph.num_groups), fastest]
    result[legal, pool] = fastest[legal]
  return result
