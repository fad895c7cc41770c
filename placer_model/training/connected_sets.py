"""Connected sets of vertices, of random size.

A set grows from one vertex along edges. Heavy edges are preferred, because
vertices that exchange many bytes should stay on one device.
"""

from __future__ import annotations

import math
import random
from typing import Callable

import numpy as np

from gdp_grappler.placers.search.moves import neighbourhood

# A neighbour, and the probability that a set joins the neighbour.
Edge = tuple[int, float]


def random_size(most: int, rng: np.random.Generator) -> int:
  """A random size from 1 to `most`, log-uniform."""
  return min(int(math.exp(rng.random() * math.log(most + 1))), most)


def python_random(rng: np.random.Generator) -> random.Random:
  """A generator that draws single numbers faster than NumPy does."""
  return random.Random(neighbourhood.seed(rng))


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
