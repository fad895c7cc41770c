"""A simple version of the rules by which moves are drawn."""

from __future__ import annotations

from typing import Any, Iterable, Sequence

import numpy as np

from gdp_grappler.placers.search.moves import moves
from gdp_grappler.placers.search.moves import native_drawer
from placer_model.training import connected_sets


def one(drawer: moves.Moves, kind: str, devices: np.ndarray,
        rng: np.random.Generator) -> np.ndarray:
  """Returns int32 [G], a move of a kind, drawn in the way of a search."""
  return drawer.draw_each(np.array([drawer.kinds.index(kind)]), devices, rng)[0]


class NaiveMoves:
  """Draws moves of the G groups of a layout."""

  def __init__(self, layout: native_drawer.MoveLayout,
               rng: np.random.Generator) -> None:
    self._layout, self._rng = layout, rng
    self._edges = connected_sets.python_random(rng)
    self._axes = list(layout.axes)
    self._order = list(layout.order)
    # Sums of odds, which all draws share.
    self._axis_sums = _sums([(1. + axis.max())**-2 for axis in self._axes])
    self._start_sums: dict[bytes, tuple[np.ndarray, list[np.ndarray]]] = {}

  def draw(self, kind: str, devices: np.ndarray,
           like: np.ndarray | None = None) -> np.ndarray:
    """Returns int [G], a move from a placement [G], by the loads of `like`."""
    like = devices if like is None else like
    start, target = self._start_and_target(kind, devices, like)
    here = devices[start]
    groups = self._groups(kind, devices, start, target)
    exchanged = kind in ('swap', 'coordinate_set_swap', 'coordinate_trade')
    if exchanged or kind in ('part', 'window', 'device', 'coordinate_set_part'):
      going = [g for g in groups if devices[g] == here]
    else:
      going = list(groups)
    returning = [g for g in groups if devices[g] == target] * exchanged
    result = devices.copy()
    for group in going:
      result[group] = target if self._may(group, target) else devices[group]
    for group in returning:
      result[group] = here if self._may(group, here) else target
    return result

  def _may(self, group: int, device: int) -> bool:
    return bool(self._layout.allowed[device, group])

  def _others(self, devices: np.ndarray, start: int) -> list[int]:
    """Returns the devices to which a group may move."""
    return [
        d for d in range(len(self._layout.allowed))
        if d != devices[start] and self._may(start, d)
    ]

  def _start_and_target(self, kind: str, devices: np.ndarray,
                        like: np.ndarray) -> tuple[int, int]:
    if not kind.startswith('coordinate') or not self._axes:
      start = self._one_of(self._order)
      return start, self._near(devices, start)
    key = like.tobytes()
    if key not in self._start_sums:
      self._start_sums[key] = self._loads(like)
    busy_s, sums = self._start_sums[key]
    start = self._weighted(self._order, sums[int(self._rng.random() < .5)])
    if self._rng.random() < .5:
      return start, self._near(devices, start)
    others = self._others(devices, start)
    gpus = [d for d in others if self._layout.accelerators[d]]
    idle = sorted(gpus or others, key=lambda d: (busy_s[d], d))
    return start, self._one_of(idle[:(len(idle) + 1) // 2])

  def _loads(self, like: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Returns the seconds of each device, and two kinds of sums of odds."""
    own_s = [row[d] for row, d in zip(self._layout.seconds, like)]
    busy_s = np.bincount(like, own_s, len(self._layout.allowed))
    return busy_s, [
        _sums([
            own_s[g] * (busy_s[like[g]] / max(busy_s.max(), 1e-300))**power
            for g in self._order
        ]) for power in (0, 4)
    ]

  def _near(self, devices: np.ndarray, start: int) -> int:
    others = self._others(devices, start)
    near = [devices[g] for g, _ in self._edges_of(start)]
    near = [d for d in near if d in others]
    if near and self._rng.random() < .5:
      return self._one_of(near)
    return self._one_of(others)

  def _groups(self, kind: str, devices: np.ndarray, start: int,
              target: int) -> Iterable[int]:
    if kind == 'group':
      return [start]
    if kind == 'device':
      return range(len(devices))
    if kind in ('window', 'swap'):
      size = self._size()
      first = max(self._order.index(start) - size // 2, 0)
      return self._order[first:first + size]
    if kind == 'border':
      return self._border(devices, start)
    levels = {
        'unit': self._layout.units, 'part': self._layout.units,
        'scope': self._layout.scopes
    }.get(kind, ())
    if len(levels):
      labels = self._one_of(levels)
      return np.flatnonzero(labels == labels[start])
    if kind.startswith('coordinate') and self._axes:
      return self._coordinate_set(kind, devices, start, target)
    return self._grown(None if kind == 'ball' else devices, start)

  def _border(self, devices: np.ndarray, start: int) -> list[int]:
    rank, size = self._order.index(start), self._size()
    first = last = rank
    while first and devices[self._order[first - 1]] == devices[start]:
      first -= 1
    while (last < len(self._order) and
           devices[self._order[last]] == devices[start]):
      last += 1
    if self._rng.random() < .5:
      return self._order[max(rank, last - size):last]
    return self._order[first:min(rank + 1, first + size)]

  def _coordinate_set(self, kind: str, devices: np.ndarray, start: int,
                      target: int) -> np.ndarray:
    starts = [start]
    if kind == 'coordinate_trade' and (devices == target).any():
      starts.append(self._one_of(np.flatnonzero(devices == target)))
    if kind in ('coordinate_whole', 'coordinate_trade'):
      axis = self._weighted(self._axes, self._axis_sums)
      return np.flatnonzero((axis[:, None] == axis[starts]).any(axis=1))
    *equal, last = self._rng.permutation(self._axes)[:self._rng.integers(1, 4)]
    inside = self._stretch(last, last[start])
    for axis in equal:
      inside &= axis == axis[start]
    return np.flatnonzero(inside)

  def _stretch(self, axis: np.ndarray, at: int) -> np.ndarray:
    if self._rng.random() < .5:
      return axis >= at if self._rng.random() < .5 else axis <= at
    size = connected_sets.random_size(int(axis.max()) + 1, self._rng)
    first = at - self._rng.integers(size)
    return (axis >= first) & (axis < first + size)

  def _edges_of(self, group: int) -> list[connected_sets.Edge]:
    edges = slice(*self._layout.starts[group:group + 2])
    return list(
        zip(self._layout.neighbours[edges].tolist(),
            self._layout.eagerness[edges].tolist()))

  def _grown(self, devices: np.ndarray | None, start: int) -> np.ndarray:

    def edges_of(group: int) -> list[connected_sets.Edge]:
      return [(g, eager) for g, eager in self._edges_of(group)
              if devices is None or devices[g] == devices[group]]

    return connected_sets.grown(start, self._size(), edges_of, self._edges)

  def _size(self) -> int:
    return connected_sets.random_size(max(len(self._order) // 2, 1), self._rng)

  def _one_of(self, values: Sequence[Any]) -> Any:
    return values[self._rng.integers(len(values))]

  def _weighted(self, values: Sequence[Any], sums: np.ndarray) -> Any:
    at = np.searchsorted(sums, self._rng.random() * sums[-1], side='right')
    return values[min(at, len(values) - 1)]


def _sums(odds: Sequence[float]) -> np.ndarray:
  """Returns the cumulative odds; even ones if all odds are 0."""
  return np.cumsum(odds if sum(odds) > 0 else np.ones(len(odds)))


def compound(naive: NaiveMoves, kind: str, devices: np.ndarray,
             usual: np.ndarray, share: float,
             rng: np.random.Generator) -> np.ndarray:
  """Returns int [G], a move, and with probability `share` a further one."""
  result = naive.draw(kind, devices)
  while rng.random() < share:
    further = rng.choice(moves.Moves.kinds, p=usual)
    result = naive.draw(further, result, devices)
  return result
