"""Makes weighted graphs for partitioners from edges."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from gdp_grappler.placers import group_graph
from gdp_grappler.placers.partitioning import partitioning


def make(weights, edges: Sequence[tuple[int, int,
                                        float]]) -> group_graph.GroupGraph:
  """Returns a graph whose nets are edges `(a, b, bytes)`."""
  return group_graph.GroupGraph(
      np.array(weights, float), group_graph.starts_of(np.full(len(edges), 2)),
      np.array([v for edge in edges for v in edge[:2]], np.int64),
      np.array([edge[2] for edge in edges], float))


def path(count: int, weight: float = 1.) -> group_graph.GroupGraph:
  """Returns the path 0 - 1 - 2 ..."""
  return make(np.full(count, weight),
              [(i, i + 1, 1.) for i in range(count - 1)])


def two_cliques(size: int = 5) -> group_graph.GroupGraph:
  """Returns two cliques of heavy edges, joined by a light edge."""
  edges = [(a + side, b + side, 100.) for side in (0, size) for a in range(size)
           for b in range(a)]
  return make(np.ones(2 * size), [*edges, (0, size, 1.)])


def job(graph: group_graph.GroupGraph, num_parts: int,
        **given: Any) -> dict[str, Any]:
  """Returns a library's arguments of a mapping; `given` replaces defaults."""
  return dict(graph=graph, shares=np.full(num_parts, 1 / num_parts),
              fixed=np.full(graph.num_vertices, partitioning.FREE),
              distances=None, imbalance=.03, seed=0) | given


def sides(parts: np.ndarray) -> set[tuple[int, ...]]:
  """Returns the parts of both halves of the vertices."""
  half = len(parts) // 2
  return {tuple(parts[:half].tolist()), tuple(parts[half:].tolist())}
