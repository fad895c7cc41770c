"""Sets of groups that belong together in a repeated structure.

A set is cut out by coordinates (`graph.structure.coordinates`): one layer over
all time steps, one variable's uses from some step on, a stretch of steps of one
branch. Whole structures move together, which is what a search that grows sets
along edges never finds.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Sequence

import numpy as np

from gdp_grappler.graph.structure import coordinates
from gdp_grappler.placers import coordinate_maps
from gdp_grappler.placers import neighbourhood
from gdp_grappler.placers import placer as placer_lib

# Coordinates that a set is cut out by, and how often its stretch of the last
# one begins or ends with the structure.
_MOST_AXES, _OPEN = 3, .5
# How often a start is drawn from busy devices sooner, how much sooner, and how
# often a target is one of the least busy.
_BALANCING, _SOONER, _RELIEVING = .5, 4, .5


@dataclasses.dataclass(frozen=True, eq=False)
class _Load:
  """What devices have to do.

  Attributes:
    busy_s: float64 [D].
    evenly: float64 [M], sums of what movable groups take, up to each.
    sooner: float64 [M], the same, where what is on busy devices counts more.
  """

  busy_s: np.ndarray
  evenly: np.ndarray
  sooner: np.ndarray


class Slabs:
  """Draws sets of the G groups of one graph, and where they might go."""

  def __init__(self, problem: placer_lib.Problem, movable: np.ndarray) -> None:
    """Lays nothing out before it is asked.

    Args:
      problem: G groups.
      movable: int [M], groups with more than one device, at least one.
    """
    self._problem, self._movable = problem, movable
    self._devices: np.ndarray | None = None
    self._load: _Load | None = None

  @property
  def are_there(self) -> bool:
    """Whether coordinates tell groups apart."""
    return self._cells is not None

  def around(self, start: int, rng: np.random.Generator) -> np.ndarray:
    """int [S], groups that share one to three coordinates with `start`.

    All but the last are equal; of the last they have a stretch of values, of
    every order of magnitude, or all from the start's on, or up to it.
    """
    cells = self._cells
    assert cells is not None  # Who asks has looked.
    axes, cell = list(cells.axes.values()), cells.groups[start]
    count = min(int(rng.integers(1, _MOST_AXES + 1)), len(axes))
    *equal, last = rng.permutation(len(axes))[:count].tolist()
    inside = _stretch(axes[last], int(axes[last][cell]), rng)
    for axis in equal:
      inside &= axes[axis] == axes[axis][cell]
    return np.flatnonzero(inside[cells.groups])

  def whole(self, starts: Sequence[int],
            rng: np.random.Generator) -> np.ndarray:
    """int [S], groups that share one coordinate with any of `starts`.

    One of few values sooner: to move a layer changes more than a time step.
    """
    cells = self._cells
    assert cells is not None  # Who asks has looked.
    axes = list(cells.axes.values())
    axis = axes[_drawn(self._coarseness, rng)]
    inside = np.isin(axis, axis[cells.groups[list(starts)]])
    return np.flatnonzero(inside[cells.groups])

  def from_to(self, devices: np.ndarray, rng: np.random.Generator,
              like: np.ndarray | None = None) -> tuple[int, int | None]:
    """A group, by its seconds, and a device that has little to do.

    Args:
      devices: int [G], where groups are.
      rng: Of the draw.
      like: int [G], a placement by whose loads to go; by default this one. It
        is not changed afterwards.

    Returns:
      None in place of the device where it may as well be any.
    """
    load = self._load_of(devices if like is None else like)
    sums = load.sooner if rng.random() < _BALANCING else load.evenly
    start = int(self._movable[_drawn(sums, rng)])
    if rng.random() >= _RELIEVING:
      return start, None
    return start, self._idle(load.busy_s, int(devices[start]), start, rng)

  def _load_of(self, devices: np.ndarray) -> _Load:
    """Most draws are from one placement, which nobody changes meanwhile."""
    if devices is not self._devices or self._load is None:
      self._devices, self._load = devices, self._new_load(devices)
    return self._load

  def _new_load(self, devices: np.ndarray) -> _Load:
    own_s = self._seconds[np.arange(len(devices)), devices]
    busy_s = np.bincount(devices, own_s, self._problem.cluster.num_devices)
    shares = busy_s / max(float(busy_s.max()), 1e-300)
    weights = own_s[self._movable]
    return _Load(busy_s, np.cumsum(weights),
                 np.cumsum(weights * shares[devices[self._movable]]**_SOONER))

  def _idle(self, busy_s: np.ndarray, here: int, start: int,
            rng: np.random.Generator) -> int:
    """One of the less busy half of the devices that `start` may go to."""
    possible = self._problem.allowed[start].copy()
    possible[here] = False
    accelerators = np.zeros_like(possible)
    accelerators[list(self._problem.cluster.accelerators)] = True
    if (possible & accelerators).any():
      possible &= accelerators
    others = np.flatnonzero(possible)
    idle = others[np.argsort(busy_s[others], kind='stable')]
    return int(idle[rng.integers(-(-len(idle) // 2))])

  @functools.cached_property
  def _cells(self) -> coordinate_maps.Cells | None:
    graph = self._problem.graph
    return coordinate_maps.cells(graph, coordinates.of(graph))

  @functools.cached_property
  def _coarseness(self) -> np.ndarray:
    """float64 [A], sums of weights of axes up to each."""
    cells = self._cells
    assert cells is not None
    return np.cumsum([(1. + axis.max())**-2 for axis in cells.axes.values()])

  @functools.cached_property
  def _seconds(self) -> np.ndarray:
    """float64 [G, D]."""
    graph = self._problem.graph
    return np.stack([
        np.bincount(graph.groups, column, graph.num_groups)
        for column in self._problem.op_seconds.T
    ], axis=1)


def _stretch(values: np.ndarray, at: int,
             rng: np.random.Generator) -> np.ndarray:
  """bool [U], where values [U] are in a stretch around one of them."""
  if rng.random() < _OPEN:
    return values >= at if rng.random() < .5 else values <= at
  size = neighbourhood.random_size(int(values.max()) + 1, rng)
  first = at - int(rng.integers(size))
  return (values >= first) & (values < first + size)


def _drawn(sums: np.ndarray, rng: np.random.Generator) -> int:
  """An index, by weights that have these sums; any where none has some."""
  if not sums[-1] > 0:
    return int(rng.integers(len(sums)))
  found = np.searchsorted(sums, rng.random() * sums[-1], 'right')
  return min(int(found), len(sums) - 1)
