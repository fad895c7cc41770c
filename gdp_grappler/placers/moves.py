"""Steps from one placement to another, for searches.

A move takes groups that belong together to another device: what is moved one
by one is pulled apart first, and nearly every such step costs transfers. So
most moves are of many groups, of every order of magnitude, chosen by what they
send each other, by when they run, by their names, or by where they are in a
structure that repeats itself (`slabs`).
"""

from __future__ import annotations

import functools
from typing import Sequence

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import growth
from gdp_grappler.placers import neighbourhood
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import slabs as slabs_lib

# Units per level; levels nearly as fine as the groups are left out.
_UNITS = (40, 160, 640, 2560)
_SCOPE_DEPTHS = (1, 2, 3, 4, 5)
# Scopes that gradients and optimizers put around the names of a model.
_WRAPPERS = ('gradient', 'train')
# Two devices exchange what they have of a set.
_SWAPS = ('swap', 'slab_swap', 'slab_trade')
_SLAB = 'slab'
# How often kinds of `Moves` are drawn, in their order.
_SHARES = (2, 1, 2, 2, 2, 1, 1, 1, .5, .1, 2.5, 2.5, 1.3, 2, 3)
# Larger sets are moved as units, scopes and stretches, which costs less.
_MOST_GROWN = 1000


class Moves:
  """Draws moves of the G groups of one graph.

  Attributes:
    kinds: Names for `draw`:
      group: one group.
      ball: connected groups, joined at random, heavy edges sooner.
      patch: the same within one device.
      unit: a unit of `coarsening`, coarse or fine.
      part: what a unit has on one device.
      scope: ops under one name scope, those of their gradients included.
      window: what a device runs in one stretch of the topological order.
      border: a stretch of it before or after a change of devices.
      swap: two devices exchange what they run in a stretch.
      device: everything that is on a device.
      slab: what shares coordinates, such as a layer's uses from one time step
        on; from busy devices and to idle ones sooner.
      slab_part: what a slab has on one device.
      slab_swap: two devices exchange what they have of a slab.
      slab_whole: all that has one coordinate, such as a layer.
      slab_trade: two devices exchange what they have of two such wholes.
    shares: float64 [kinds], how often to draw each where nothing is known; 0
      for slabs where coordinates tell nothing apart.
    movable: int [M], groups with more than one device.
  """

  kinds = ('group', 'ball', 'patch', 'unit', 'part', 'scope', 'window',
           'border', 'swap', 'device', 'slab', 'slab_part', 'slab_swap',
           'slab_whole', 'slab_trade')

  def __init__(self, problem: placer_lib.Problem) -> None:
    graph = problem.graph
    self._problem, self._allowed = problem, problem.allowed
    self.movable = np.flatnonzero(problem.allowed.sum(axis=1) > 1)
    self._order = self._topological(graph)
    self._rank = np.full(graph.num_groups, -1)
    self._rank[self._order] = np.arange(len(self._order))
    self._starts, self._neighbours, size = group_graph.build(
        problem, np.arange(problem.cluster.num_devices)).adjacency
    self._growth = growth.Growth(self._starts, self._neighbours,
                                 neighbourhood.eagerness(size))
    self._slabs = slabs_lib.Slabs(problem, self.movable)
    self.shares = self._shares(self._slabs.are_there)

  def _shares(self, with_slabs: bool) -> np.ndarray:
    result = np.array([
        share * (with_slabs or not kind.startswith(_SLAB))
        for kind, share in zip(self.kinds, _SHARES)
    ])
    return result / result.sum()

  def draw(self, kind: str, devices: np.ndarray, rng: np.random.Generator,
           like: np.ndarray | None = None) -> np.ndarray:
    """A neighbour of a placement.

    Args:
      kind: One of `kinds`; where the graph offers none of that kind, a patch.
      devices: int [G], legal; unchanged.
      rng: Of the move.
      like: int [G], a placement that differs little and is not changed
        afterwards; what devices have to do is summed for it once.

    Returns:
      int [G], legal; it may be equal to `devices`.
    """
    start, target = self._start(kind, devices, rng, like)
    if target is None:
      target = self._target(devices, start, rng)
    back = devices[start] if kind in _SWAPS else None
    if kind == 'slab_trade':
      groups = self._traded(devices, start, target, rng)
    else:
      groups = getattr(self, f'_{kind}')(devices, start, rng)
    return self._moved(devices, groups, target, back)

  def _start(self, kind: str, devices: np.ndarray, rng: np.random.Generator,
             like: np.ndarray | None) -> tuple[int, int | None]:
    """A group that moves, and where to if that matters."""
    if kind.startswith(_SLAB) and self._slabs.are_there:
      return self._slabs.from_to(devices, rng, like)
    return _one_of(self.movable, rng), None

  def _moved(self, devices: np.ndarray, groups: np.ndarray, target: int,
             back: int | None = None) -> np.ndarray:
    """`groups` to `target`, as far as they may; those there go `back`."""
    if back is None:
      return neighbourhood.moved(devices, groups, target, self._allowed)
    here, there = (groups[devices[groups] == d] for d in (back, target))
    swapped = neighbourhood.moved(devices, there, back, self._allowed)
    return neighbourhood.moved(swapped, here, target, self._allowed)

  def _target(self, devices: np.ndarray, start: int,
              rng: np.random.Generator) -> int:
    """A neighbour's device or any, but another one."""
    possible = self._allowed[start].copy()
    possible[devices[start]] = False
    near = devices[self._neighbours[self._starts[start]:self._starts[start
                                                                     + 1]]]
    near = near[possible[near]]
    if near.size and rng.random() < .5:
      return _one_of(near, rng)
    return _one_of(possible.nonzero()[0], rng)

  def _size(self, rng: np.random.Generator) -> int:
    """Up to half of the groups."""
    return neighbourhood.random_size(max(len(self.movable) // 2, 1), rng)

  def _group(self, devices: np.ndarray, start: int,
             rng: np.random.Generator) -> np.ndarray:
    del devices, rng
    return np.array([start])

  def _ball(self, devices: np.ndarray, start: int,
            rng: np.random.Generator) -> np.ndarray:
    return self._grown(np.zeros_like(devices), start, rng)

  def _patch(self, devices: np.ndarray, start: int,
             rng: np.random.Generator) -> np.ndarray:
    return self._grown(devices, start, rng)

  def _unit(self, devices: np.ndarray, start: int,
            rng: np.random.Generator) -> np.ndarray:
    return self._labelled(self._units, devices, start, rng)

  def _part(self, devices: np.ndarray, start: int,
            rng: np.random.Generator) -> np.ndarray:
    return _alike(self._unit(devices, start, rng), devices, start)

  def _scope(self, devices: np.ndarray, start: int,
             rng: np.random.Generator) -> np.ndarray:
    return self._labelled(self._scopes, devices, start, rng)

  def _window(self, devices: np.ndarray, start: int,
              rng: np.random.Generator) -> np.ndarray:
    return _alike(self._stretch(start, self._size(rng)), devices, start)

  def _border(self, devices: np.ndarray, start: int,
              rng: np.random.Generator) -> np.ndarray:
    """Up to the next change of devices, or away from the last one."""
    in_order = devices[self._order]
    changes = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    at = np.searchsorted(changes, self._rank[start], 'right')
    first = changes[at - 1] if at else 0
    last = changes[at] if at < len(changes) else len(in_order)
    rank, size = int(self._rank[start]), self._size(rng)
    if rng.random() < .5:
      return self._order[max(rank, last - size):last]
    return self._order[first:min(rank + 1, first + size)]

  def _swap(self, devices: np.ndarray, start: int,
            rng: np.random.Generator) -> np.ndarray:
    del devices
    return self._stretch(start, self._size(rng))

  def _slab(self, devices: np.ndarray, start: int,
            rng: np.random.Generator) -> np.ndarray:
    if not self._slabs.are_there:
      return self._patch(devices, start, rng)
    return self._slabs.around(start, rng)

  def _slab_part(self, devices: np.ndarray, start: int,
                 rng: np.random.Generator) -> np.ndarray:
    return _alike(self._slab(devices, start, rng), devices, start)

  def _slab_swap(self, devices: np.ndarray, start: int,
                 rng: np.random.Generator) -> np.ndarray:
    return self._slab(devices, start, rng)

  def _slab_whole(self, devices: np.ndarray, start: int,
                  rng: np.random.Generator) -> np.ndarray:
    if not self._slabs.are_there:
      return self._patch(devices, start, rng)
    return self._slabs.whole([start], rng)

  def _traded(self, devices: np.ndarray, start: int, target: int,
              rng: np.random.Generator) -> np.ndarray:
    there = np.flatnonzero(devices == target)
    if not self._slabs.are_there or not there.size:
      return self._slab_whole(devices, start, rng)
    return self._slabs.whole([start, _one_of(there, rng)], rng)

  def _device(self, devices: np.ndarray, start: int,
              rng: np.random.Generator) -> np.ndarray:
    del rng
    return np.flatnonzero(devices == devices[start])

  def _stretch(self, start: int, size: int) -> np.ndarray:
    first = max(int(self._rank[start]) - size // 2, 0)
    return self._order[first:first + size]

  def _labelled(self, labels: Sequence[np.ndarray], devices: np.ndarray,
                start: int, rng: np.random.Generator) -> np.ndarray:
    if not labels:
      return self._patch(devices, start, rng)
    chosen = labels[int(rng.integers(len(labels)))]
    return np.flatnonzero(chosen == chosen[start])

  def _grown(self, devices: np.ndarray, start: int,
             rng: np.random.Generator) -> np.ndarray:
    """Connected groups on one device, of random number, around `start`."""
    seed = neighbourhood.seed(rng)
    size = min(self._size(rng), _MOST_GROWN)
    return self._growth.grown(devices, start, size, seed)

  def _topological(self, graph: op_graph.OpGraph) -> np.ndarray:
    """Movable groups by their first ops."""
    first = np.unique(graph.groups[graph.topological_order],
                      return_index=True)[1]
    return self.movable[np.argsort(first[self.movable], kind='stable')]

  @functools.cached_property
  def _units(self) -> list[np.ndarray]:
    """int [G] each, units of groups from coarse to fine."""
    graph = self._problem.graph
    first = graph.first_ops
    return [
        coarsening.coarsen(graph, self._allowed, self._problem.op_seconds,
                           coarsening.CoarseningConfig(count,
                                                       graph.num_groups))[first]
        for count in _UNITS if count < graph.num_groups / 2
    ]

  @functools.cached_property
  def _scopes(self) -> list[np.ndarray]:
    """int [G] each, name scopes of groups from short to long."""
    graph = self._problem.graph
    first = graph.first_ops
    paths = [[
        part for part in graph.names[op].split('/')[:-1]
        if not part.startswith(_WRAPPERS)
    ] for op in first]
    result: list[np.ndarray] = []
    for depth in _SCOPE_DEPTHS:
      labels = np.unique(['/'.join(path[:depth]) for path in paths],
                         return_inverse=True)[1]
      if labels.max() and (not result or (labels != result[-1]).any()):
        result.append(labels)
    return result


def _one_of(values: np.ndarray, rng: np.random.Generator) -> int:
  """What `rng.choice` draws, at a tenth of its price."""
  return int(values[rng.integers(len(values))])


def _alike(groups: np.ndarray, devices: np.ndarray, start: int) -> np.ndarray:
  return groups[devices[groups] == devices[start]]
