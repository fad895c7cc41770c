"""Connected sets of vertices, of random size, that a search moves.

A set grows from one vertex along edges. Heavy edges are preferred, because
vertices that exchange many bytes should stay on one device.
"""

from __future__ import annotations

import math
import random
from typing import Callable, Iterable

import numpy as np

# Probability that a set joins a vertex over the lightest edge. The probability
# grows to 1 over the heaviest edge.
_LEAST_EAGERNESS = 0.2

# A neighbour, and the probability that a set joins the neighbour.
Edge = tuple[int, float]


def eagerness(size: np.ndarray) -> np.ndarray:
  """float64 [E], probabilities that a set joins a vertex over each edge.

  Args:
    size: [E], bytes of each edge; only their order counts.
  """
  rank = np.argsort(np.argsort(size, kind='stable'), kind='stable')
  return _LEAST_EAGERNESS + (1 - _LEAST_EAGERNESS) * (rank + 1) / max(
      len(rank), 1)


def random_size(most: int, rng: np.random.Generator) -> int:
  """A random size from 1 to `most`, log-uniform."""
  return min(int(math.exp(rng.random() * math.log(most + 1))), most)


def python_random(rng: np.random.Generator) -> random.Random:
  """A generator that draws single numbers faster than NumPy does."""
  return random.Random(seed(rng))


def seed(rng: np.random.Generator) -> int:
  """A random seed for another generator."""
  return int(rng.integers(1 << 62))


def grown(start: int, size: int, edges_of: Callable[[int], list[Edge]],
          rng: random.Random) -> np.ndarray:
  """int [S], connected vertices around a start.

  Args:
    start: A vertex.
    size: Number of vertices; the set is smaller if fewer are connected.
    edges_of: Returns the edges of a vertex.
    rng: Random numbers; see `python_random`.
  """
  # Most sets are small, so plain Python is faster than NumPy over all edges.
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
  """int [V], a placement after the move of some vertices.

  A vertex that may not be on the target stays.

  Args:
    devices: int [V], the placement before the move; not changed.
    vertices: int [S], the vertices to move.
    target: The new device of the vertices.
    allowed: bool [V, D], devices that each vertex may have.
  """
  result = devices.copy()
  result[vertices[allowed[vertices, target]]] = target
  return result


def unions(current: np.ndarray,
           changed: Iterable[np.ndarray]) -> list[np.ndarray]:
  """Unions of moves: of the first two, of the first three, and so on.

  Args:
    current: int [V], the placement before the moves.
    changed: J of int [V], the placement after each move, the best first. If two
      moves change the same vertex, the better move counts.
  """
  result, union = [], current
  for index, row in enumerate(changed):
    union = np.where(union == current, row, union)
    if index:
      result.append(union)
  return result
