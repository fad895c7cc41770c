"""Moves of a search: each gives another device to a set of groups.

Groups that exchange many bytes should stay together. A search that moves one
group at a time has to separate such groups first, which nearly always makes the
step longer. So most moves are of many groups, and the sets have sizes of all
orders of magnitude. The kinds of moves choose their sets by:

* edges: groups that send each other tensors;
* time: groups that run one after the other;
* names: groups in one name scope;
* coordinates in repeated structure (`graph.structure`): one layer over all time
  steps, the uses of one variable from some time step on, some time steps of one
  branch. A set that grows along edges rarely is such a structure.

The rules that draw moves are in C++ (`move_drawer.h`). This module lays out the
arrays that the rules read.
"""

from __future__ import annotations

import functools
from typing import Sequence

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.graph.structure import axes as axes_lib
from gdp_grappler.graph.structure import coordinates
from gdp_grappler.graph.structure import native_scopes
from gdp_grappler.placers import group_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search.moves import native_drawer
from gdp_grappler.placers.search.moves import neighbourhood

# Number of units of each level of `coarsening`. A level with more than half as
# many units as groups is left out.
_UNITS = (40, 160, 640, 2560)
# Depths of the name scopes of each level; 1 is the outermost scope.
_SCOPE_DEPTHS = (1, 2, 3, 4, 5)
# First letters of the scopes that gradients and optimizers put around the names
# of a model.
_WRAPPERS = ('gradient', 'train')
# First letters of the kinds of moves that choose sets by coordinates.
_BY_COORDINATES = 'coordinate'
# Relative frequencies of the kinds of `Moves`, in the order of `Moves.kinds`.
_SHARES = (2, 1, 2, 2, 2, 1, 1, 1, .5, .1, 2.5, 2.5, 1.3, 2, 3)


class Moves:
  """Draws moves of the G groups of one graph.

  Attributes:
    kinds: Names of the kinds of moves. The kinds `coordinate...` choose sets of
      groups with equal coordinates.
      group: one group.
      ball: connected groups, joined at random, with preference for heavy edges.
      patch: a ball of groups of one device.
      unit: a unit of `coarsening`, of any level.
      part: the groups of a unit on one device.
      scope: the groups of one name scope and of its gradients.
      window: the groups of one device in an interval of the topological order.
      border: such an interval right before or after a change of devices.
      swap: two devices exchange their groups in an interval.
      device: all groups of a device.
      coordinate_set: the groups with the same values of up to three
        coordinates. The last coordinate may have an interval of values, such as
        the time steps of a layer from one step on. Moves from busy devices to
        idle devices are preferred.
      coordinate_set_part: the groups of such a set on one device.
      coordinate_set_swap: two devices exchange their groups of such a set.
      coordinate_whole: all groups with one value of a coordinate, such as a
        layer.
      coordinate_trade: two devices exchange their groups of two such values.
    shares: float64 [kinds], probability of each kind before the search knows
      which kinds gain. 0 for a kind that is not wanted, and for sets of
      coordinates if the graph has no coordinates.
    movable: int [M], groups with more than one device.
  """

  kinds = ('group', 'ball', 'patch', 'unit', 'part', 'scope', 'window',
           'border', 'swap', 'device', 'coordinate_set', 'coordinate_set_part',
           'coordinate_set_swap', 'coordinate_whole', 'coordinate_trade')

  def __init__(self, problem: placer_lib.Problem,
               wanted: Sequence[str] = kinds) -> None:
    """Computes `shares`; the first draw computes the rest.

    Args:
      problem: G groups.
      wanted: The kinds to draw, of `kinds`; at least one.
    """
    self._problem = problem
    self.movable = np.flatnonzero(problem.allowed.sum(axis=1) > 1)
    self._axes = axes_lib.of(coordinates.of(problem.graph))
    self.shares = self._shares(wanted)

  def _shares(self, wanted: Sequence[str]) -> np.ndarray:
    of_wanted = np.isin(self.kinds, wanted)
    result = np.array([
        share * (bool(self._axes) or not kind.startswith(_BY_COORDINATES))
        for kind, share in zip(self.kinds, _SHARES)
    ]) * of_wanted
    if not result.any():  # Only coordinate sets are wanted, but there are none.
      result = of_wanted * 1.
    return result / result.sum()

  def draw_each(self, kinds: np.ndarray, devices: np.ndarray,
                rng: np.random.Generator, compound: float = 0.) -> np.ndarray:
    """Draws K moves from one placement.

    Args:
      kinds: int [K], indices of `kinds`.
      devices: int [G], the placement before the moves, legal; not changed.
      rng: Random numbers of the moves.
      compound: Probability that one more move is added to a move; less than 1.
        After each added move, another one is added with the same probability.
        `shares` has the probabilities of the kinds of added moves.

    Returns:
      int32 [K, G], legal; rows may be equal to `devices`.

    Raises:
      MemoryError: there is not enough memory.
    """
    sums = self.shares.cumsum()
    # The last sum is exactly 1, so that a kind with share 0 is never drawn.
    return self._drawer.draw(kinds, devices, neighbourhood.seed(rng), compound,
                             sums / sums[-1])

  @functools.cached_property
  def _drawer(self) -> native_drawer.NativeDrawer:
    return native_drawer.NativeDrawer(self._layout(), len(self.kinds))

  def _layout(self) -> native_drawer.MoveLayout:
    problem, graph = self._problem, self._problem.graph
    starts, neighbours, size = group_graph.build(
        graph, problem.busy_seconds,
        np.arange(problem.cluster.num_devices)).adjacency
    seconds = problem.group_seconds
    accelerators = np.zeros(problem.cluster.num_devices, bool)
    accelerators[list(problem.cluster.accelerators)] = True
    return native_drawer.MoveLayout(
        starts, neighbours, neighbourhood.eagerness(size),
        graph.group_order[np.isin(graph.group_order, self.movable)],
        np.array(
            coarsening.levels(problem.graph, problem.allowed,
                              problem.op_seconds, _UNITS)),
        np.array(self._scopes()), np.array([*self._axes.values()]), seconds,
        problem.allowed.T, accelerators)

  def _scopes(self) -> list[np.ndarray]:
    """int [G] each, number of the name scope of each group, by depth."""
    graph = self._problem.graph
    by_depth = native_scopes.levels(
        [graph.names[op] for op in graph.first_ops.tolist()],
        _SCOPE_DEPTHS[::-1], _WRAPPERS)
    result: list[np.ndarray] = []
    for labels in by_depth[::-1]:
      if labels.max() and (not result or (labels != result[-1]).any()):
        result.append(labels)
    return result
