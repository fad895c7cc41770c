"""Steps from one placement to another, for searches.

A move takes groups that belong together to another device: what is moved one
by one is pulled apart first, and nearly every such step costs transfers. So
most moves are of many groups, of every order of magnitude, chosen by what they
send each other, by when they run, by their names, or by where they are in a
structure that repeats itself: one layer over all time steps, one variable's
uses from some step on, a stretch of steps of one branch. Whole structures move
together, which is what a search that grows sets along edges never finds.

The rules themselves are in C++ (`move_drawer.h`); here is what they look at.
"""

from __future__ import annotations

import functools
from typing import Iterable, Sequence

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.structure import axes as axes_lib
from gdp_grappler.graph.structure import coordinates
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.moves import native_drawer
from gdp_grappler.placers.search.moves import neighbourhood

# Units per level; levels nearly as fine as the groups are left out.
_UNITS = (40, 160, 640, 2560)
_SCOPE_DEPTHS = (1, 2, 3, 4, 5)
# Scopes that gradients and optimizers put around the names of a model.
_WRAPPERS = ('gradient', 'train')
_SLAB = 'slab'
# How often kinds of `Moves` are drawn, in their order.
_SHARES = (2, 1, 2, 2, 2, 1, 1, 1, .5, .1, 2.5, 2.5, 1.3, 2, 3)


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
      for what is not wanted, and for slabs where coordinates tell nothing
      apart.
    movable: int [M], groups with more than one device.
  """

  kinds = ('group', 'ball', 'patch', 'unit', 'part', 'scope', 'window',
           'border', 'swap', 'device', 'slab', 'slab_part', 'slab_swap',
           'slab_whole', 'slab_trade')

  def __init__(self, problem: placer_lib.Problem,
               wanted: Sequence[str] = kinds) -> None:
    """Lays out what `shares` need; the rest when the first move is drawn.

    Args:
      problem: G groups.
      wanted: Of `kinds`, which to draw; at least one.
    """
    self._problem = problem
    self.movable = np.flatnonzero(problem.allowed.sum(axis=1) > 1)
    self._axes = axes_lib.of(coordinates.of(problem.graph))
    self.shares = self._shares(wanted)

  def _shares(self, wanted: Sequence[str]) -> np.ndarray:
    of_wanted = np.isin(self.kinds, wanted)
    result = np.array([
        share * (bool(self._axes) or not kind.startswith(_SLAB))
        for kind, share in zip(self.kinds, _SHARES)
    ]) * of_wanted
    if not result.any():  # Of slabs alone, where there are none.
      result = of_wanted * 1.
    return result / result.sum()

  def draw(self, kind: str, devices: np.ndarray,
           rng: np.random.Generator) -> np.ndarray:
    """A neighbour of a placement.

    Args:
      kind: One of `kinds`; where the graph offers none of that kind, a patch.
      devices: int [G], legal; unchanged.
      rng: Of the move.

    Returns:
      int32 [G], legal; it may be equal to `devices`.

    Raises:
      MemoryError: there is not enough.
    """
    return self.draw_each(np.array([self.kinds.index(kind)]), devices, rng)[0]

  def draw_each(self, kinds: np.ndarray, devices: np.ndarray,
                rng: np.random.Generator, compound: float = 0.,
                usual: np.ndarray | None = None) -> np.ndarray:
    """Neighbours of a placement, all in one go.

    Args:
      kinds: int [K], indices of `kinds`.
      devices: int [G], legal; unchanged. Loads are its own for all moves.
      rng: Of the moves.
      compound: How often a further move is made from where one led, and so on;
        less than 1.
      usual: float64 [kinds], how often each kind is drawn for a further move;
        by default `shares`.

    Returns:
      int32 [K, G], legal; rows may be equal to `devices`.

    Raises:
      MemoryError: there is not enough.
    """
    sums = (self.shares if usual is None else usual).cumsum()
    # Ends with 1, so that no kind without a share is ever drawn.
    return self._drawer.draw(kinds, devices, devices, neighbourhood.seed(rng),
                             compound, sums / sums[-1])

  @functools.cached_property
  def _drawer(self) -> native_drawer.NativeDrawer:
    return native_drawer.NativeDrawer(self._layout(), len(self.kinds))

  def _layout(self) -> native_drawer.Layout:
    problem, graph = self._problem, self._problem.graph
    starts, neighbours, size = group_graph.build(
        problem, np.arange(problem.cluster.num_devices)).adjacency
    seconds = problem.group_seconds
    accelerators = np.zeros(problem.cluster.num_devices, bool)
    accelerators[list(problem.cluster.accelerators)] = True
    return native_drawer.Layout(
        starts, neighbours, neighbourhood.eagerness(size),
        self._topological(graph),
        np.array(
            coarsening.levels(problem.graph, problem.allowed,
                              problem.op_seconds, _UNITS)),
        np.array(self._scopes()), np.array([*self._axes.values()]), seconds,
        problem.allowed.T, accelerators)

  def _topological(self, graph: op_graph.OpGraph) -> np.ndarray:
    """Movable groups by their first ops."""
    first = np.unique(graph.groups[graph.topological_order],
                      return_index=True)[1]
    return self.movable[np.argsort(first[self.movable], kind='stable')]

  def _scopes(self) -> list[np.ndarray]:
    """int [G] each, name scopes of groups from short to long."""
    graph = self._problem.graph
    names = [graph.names[op] for op in graph.first_ops.tolist()]
    texts, labels = _numbered(name.rpartition('/')[0] for name in names)
    texts, of_text = _numbered(map(_unwrapped, texts))
    labels = of_text[labels]
    by_depth = []
    for depth in reversed(_SCOPE_DEPTHS):
      # There are ever fewer: what begins alike is looked at once.
      texts, of_text = _numbered(
          '/'.join(text.split('/', depth)[:depth]) for text in texts)
      labels = of_text[labels]
      by_depth.append(_ranks(texts)[labels])
    result: list[np.ndarray] = []
    for labels in reversed(by_depth):
      if labels.max() and (not result or (labels != result[-1]).any()):
        result.append(labels)
    return result


def _unwrapped(scope: str) -> str:
  return '/'.join(
      [part for part in scope.split('/') if not part.startswith(_WRAPPERS)])


def _numbered(texts: Iterable[str]) -> tuple[list[str], np.ndarray]:
  """Distinct texts [U] as they come, and which of them each is, int [n]."""
  numbers: dict[str, int] = {}
  of_texts = [numbers.setdefault(text, len(numbers)) for text in texts]
  return list(numbers), np.array(of_texts, int)


def _ranks(texts: list[str]) -> np.ndarray:
  """int [U], where distinct texts come in their order."""
  result = np.empty(len(texts), int)
  result[sorted(range(len(texts)),
                key=texts.__getitem__)] = np.arange(len(texts))
  return result
