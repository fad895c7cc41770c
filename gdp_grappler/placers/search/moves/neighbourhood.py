"""Connected sets of a graph's vertices, of random size, for searches to move.

A set grows from one vertex along its edges, over heavy edges sooner: what
exchanges much had better stay together.
"""

from __future__ import annotations

import math
import random
from typing import Callable, Iterable

import numpy as np

# A light edge draws a vertex into a set this often; a heavy one always.
_LEAST_EAGERNESS = 0.2

Edge = tuple[int, float]


def eagerness(size: np.ndarray) -> np.ndarray:
  """float64 [E], how likely edges of sizes [E] are to draw a vertex in."""
  rank = np.argsort(np.argsort(size, kind='stable'), kind='stable')
  return _LEAST_EAGERNESS + (1 - _LEAST_EAGERNESS) * (rank + 1) / max(
      len(rank), 1)


def random_size(most: int, rng: np.random.Generator) -> int:
  """From 1 to `most`, every order of magnitude alike."""
  return min(int(math.exp(rng.random() * math.log(most + 1))), most)


def plain(rng: np.random.Generator) -> random.Random:
  """A generator that is quicker where numbers are drawn one by one."""
  return random.Random(seed(rng))


def seed(rng: np.random.Generator) -> int:
  """Of a generator that is quicker where numbers are drawn one by one."""
  return int(rng.integers(1 << 62))


def grown(start: int, size: int, edges_of: Callable[[int], list[Edge]],
          rng: random.Random) -> np.ndarray:
  """int [S], `size` connected vertices around one, or all in reach.

  Args:
    start: A vertex.
    size: How many are wanted.
    edges_of: From a vertex to its neighbours and how eagerly each is joined.
    rng: Of the edges; see `plain`.
  """
  # Plain Python: most sets are small, and numpy would look at every edge.
  draw = rng.random
  inside, frontier = {start}, list(edges_of(start))
  while frontier and len(inside) < size:
    index = int(draw() * len(frontier))
    vertex, eager = frontier[index]
    if vertex not in inside and draw() >= eager:
      continue
    frontier[index] = frontier[-1]
    frontier.pop()
    if vertex not in inside:
      inside.add(vertex)
      frontier += edges_of(vertex)
  return np.fromiter(inside, int, len(inside))


def moved(devices: np.ndarray, vertices: np.ndarray, target: int,
          allowed: np.ndarray) -> np.ndarray:
  """int [V], a placement with some vertices moved, as far as they may go.

  Args:
    devices: int [V]; unchanged.
    vertices: int [S].
    target: Their new device.
    allowed: bool [V, D].
  """
  result = devices.copy()
  result[vertices[allowed[vertices, target]]] = target
  return result


def unions(current: np.ndarray,
           changed: Iterable[np.ndarray]) -> list[np.ndarray]:
  """The first two changes of a placement in one, the first three, ...

  Args:
    current: int [V].
    changed: J times int [V], the best first. Of two that move one vertex, the
      better has its way.
  """
  result, union = [], current
  for index, row in enumerate(changed):
    union = np.where(union == current, row, union)
    if index:
      result.append(union)
  return result
