"""Packs groups into memories that the groups almost fill.

In some problems, few placements fit. A repair that moves one part after the
other (`memory_repair`) may not find these placements. For example, a memory has
room for three large variables, and only one choice of three variables fits.

The packer places the largest groups by branch and bound, as for bin packing in
S. Martello and P. Toth, "Knapsack Problems", 1990, chapter 8. It first tries
the memory that a group fills best. If later groups no longer fit, it takes the
group back and tries another memory. The number of trials is limited. Then each
small group goes to the memory with the most room. The packer does not look at
the step time; a search continues from the placements that fit.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.memory import memory_estimate

# Number of the largest groups, which branch and bound places.
_MOST_ITEMS = 200
# Trials of a group in a memory, for one packing.
_TRIALS = 5_000
# Trials of a group in a memory, for all packings of a problem. These trials
# take about a second.
_MOST_TRIALS = 15_000
# Stands for no device: the group may be on none of the memory's devices.
_NOWHERE = -1
# Bisections of the largest share to which a memory is filled.
_BISECTIONS = 5
# Rounds of packing; after each, the evaluator computes the peaks of memories.
_ROUNDS = 4


def packed(problem: placer_lib.Problem) -> np.ndarray:
  """int32 [K, G], legal placements that may fit; K may be 0.

  K is 0 if the configuration packs no memories (`FitConfig.packs`).

  A placement fills no memory above a common share, which is lowered by
  bisection. The evaluator then computes the peaks of the memories. The next
  round puts less into the memories whose peaks exceed the estimates.

  Args:
    problem: G groups.
  """
  graph, room = problem.graph, problem.cluster.pool_bytes.astype(float)
  packings: list[np.ndarray] = []
  for sizes in _sizes(graph) if search_config.DEFAULT.fit.packs else ():
    packer, target = _Packer(problem, sizes), room
    for _ in range(_ROUNDS):
      rows = packer.balanced(target)
      if not rows:
        break
      packings += rows
      prices = problem.evaluator.price_groups(graph, np.stack(rows),
                                              ceiling_s=None)
      if prices.valid.any():
        return np.stack(packings)
      # At its peak a memory also holds tensors that the sizes do not count.
      target = room - np.maximum(prices.peak_bytes[0] - packer.load(rows[0]), 0)
  return np.array(packings, np.int32).reshape(-1, graph.num_groups)


@dataclasses.dataclass(frozen=True, eq=False)
class _Sizes:
  """Estimated bytes of groups.

  Attributes:
    permanent: float64 [G], bytes that a group holds for the whole step.
    temporary: float64 [G], bytes that a group holds while its largest op runs.
      In each memory, only the group with the most of these bytes counts.
  """

  permanent: np.ndarray
  temporary: np.ndarray


def _sizes(graph: op_graph.OpGraph) -> list[_Sizes]:
  """Two estimates of the bytes of groups.

  The first estimate counts tensors only while an op uses them, one op at a
  time. The second one counts all tensors with the same share, the share that is
  alive at the worst moment (`memory_estimate.alive_share`).
  """
  touched = np.bincount(graph.tensor_ops, graph.tensor_bytes, graph.num_ops)
  data = graph.edge_tensors >= 0
  touched += np.bincount(graph.edges[data, 1],
                         graph.tensor_bytes[graph.edge_tensors[data]],
                         graph.num_ops)
  temporary = np.zeros(graph.num_groups)
  np.maximum.at(temporary, graph.groups, touched)
  share = memory_estimate.alive_share(graph)
  return [
      _Sizes(memory_estimate.group_bytes(graph, 0.), temporary),
      _Sizes(memory_estimate.group_bytes(graph, share),
             np.zeros_like(temporary))
  ]


class _Packer:
  """Packs the groups of one problem by given sizes."""

  def __init__(self, problem: placer_lib.Problem, sizes: _Sizes) -> None:
    self._permanent, self._temporary = sizes.permanent, sizes.temporary
    self._pools = problem.cluster.memory_pools
    self._num_pools = len(problem.cluster.pool_bytes)
    self._fastest = _fastest(problem)
    self._trials_left = _MOST_TRIALS
    order = np.argsort(-(sizes.permanent + sizes.temporary), kind='stable')
    self._items = order[:_MOST_ITEMS].tolist()
    self._others = order[_MOST_ITEMS:].tolist()
    # Number of the kind of each memory. Memories are of one kind if the same
    # groups may be in them.
    _, self._memory_kinds = np.unique(self._fastest >= 0, axis=1,
                                      return_inverse=True)

  def load(self, devices: np.ndarray) -> np.ndarray:
    """float64 [P], estimated bytes in each memory.

    Args:
      devices: int [G], a placement.
    """
    pools = self._pools[devices]
    temporary = np.zeros(self._num_pools)
    np.maximum.at(temporary, pools, self._temporary)
    return np.bincount(pools, self._permanent, self._num_pools) + temporary

  def balanced(self, room: np.ndarray) -> list[np.ndarray]:
    """Placements, int32 [G] each; first the one that leaves the most room.

    Args:
      room: float64 [P], bytes that a placement may put into each memory.
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
    """int32 [G], a placement within `room`; None if no trial succeeds."""
    if self._permanent.sum() > room.sum():
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
      memories.add(chosen[-1], self._permanent[group], self._temporary[group])
      waiting.append(self._choices(len(chosen), memories))
    return None

  def _choices(self, depth: int, memories: _Memories) -> list[int]:
    """Memories with room for an item; first the one with the least room."""
    if depth == len(self._items):
      return []
    group = self._items[depth]
    fitting: dict[tuple[int, float, float], int] = {}
    for pool in range(self._num_pools):
      left = memories.left(pool, self._permanent[group], self._temporary[group])
      if left >= 0 and self._fastest[group, pool] != _NOWHERE:
        fitting.setdefault(
            (int(self._memory_kinds[pool]), *memories.state[pool]), pool)
    return sorted(fitting.values(), key=lambda pool: memories.left(pool, 0, 0))

  def _with_others(self, chosen: list[int],
                   memories: _Memories) -> np.ndarray | None:
    """int32 [G], items in the chosen memories, small groups where most is free.

    None if a small group fits into no memory.
    """
    result = np.zeros(len(self._permanent), np.int32)
    for group, pool in zip(self._items, chosen):
      result[group] = self._fastest[group, pool]
    for group in self._others:
      permanent, temporary = self._permanent[group], self._temporary[group]
      pool = max(
          np.flatnonzero(self._fastest[group] != _NOWHERE).tolist(),
          key=lambda pool: memories.left(pool, permanent, temporary))
      if memories.left(pool, permanent, temporary) < 0:
        return None
      memories.add(pool, permanent, temporary)
      result[group] = self._fastest[group, pool]
    return result


class _Memories:
  """The contents of the memories while they are packed.

  Attributes:
    state: For each memory, its size less all permanent bytes, and the largest
      number of temporary bytes of a group.
  """

  def __init__(self, room: np.ndarray) -> None:
    self.state = [(bytes_, 0.) for bytes_ in room.tolist()]
    self._before: list[tuple[float, float]] = []

  def left(self, pool: int, permanent: float, temporary: float) -> float:
    """Bytes that are left in a memory if a group is added."""
    free, most = self.state[pool]
    return free - permanent - max(most, temporary)

  def add(self, pool: int, permanent: float, temporary: float) -> None:
    """Puts a group into a memory."""
    self._before.append(self.state[pool])
    free, most = self.state[pool]
    self.state[pool] = free - permanent, max(most, temporary)

  def take_back(self, pool: int) -> None:
    """Undoes the last `add`, which must have been to this memory."""
    self.state[pool] = self._before.pop()


def _fastest(problem: placer_lib.Problem) -> np.ndarray:
  """int [G, P], the fastest device of each memory for each group.

  `_NOWHERE` if the group may be on no device of that memory.
  """
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
