"""Weighted graphs for partitioners, from edges."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.placers import group_graph


def make(weights, edges: Sequence[tuple[int, int,
                                        float]]) -> group_graph.GroupGraph:
  """A graph whose nets are edges `(a, b, bytes)`."""
  return group_graph.GroupGraph(
      np.array(weights, float), group_graph.starts_of(np.full(len(edges), 2)),
      np.array([v for edge in edges for v in edge[:2]], np.int64),
      np.array([edge[2] for edge in edges], float))


def path(count: int, weight: float = 1.) -> group_graph.GroupGraph:
  """0 - 1 - 2 ..."""
  return make(np.full(count, weight),
              [(i, i + 1, 1.) for i in range(count - 1)])


def two_cliques(size: int = 5) -> group_graph.GroupGraph:
  """Two cliques of heavy edges, joined by a thin one."""
  edges = [(a + side, b + side, 100.) for side in (0, size) for a in range(size)
           for b in range(a)]
  return make(np.ones(2 * size), [*edges, (0, size, 1.)])


def random(seed: int, count: int) -> group_graph.GroupGraph:
  """Connected, of different weights."""
  rng = np.random.default_rng(seed)
  edges = [(int(rng.integers(max(0, i - 20), i)), i, rng.exponential())
           for i in range(1, count) for _ in range(3)]
  edges = list({edge[:2]: edge for edge in edges}.values())
  return make(rng.exponential(size=count), edges)


def sides(parts: np.ndarray) -> set[tuple[int, ...]]:
  """Parts of both halves of the vertices."""
  half = len(parts) // 2
  return {tuple(parts[:half].tolist()), tuple(parts[half:].tolist())}
