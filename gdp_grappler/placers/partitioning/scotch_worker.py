"""The process in which Scotch runs: it runs some jobs and ends.

Scotch has one random generator and one pool of threads per process. So a
mapping depends on the earlier mappings and on the speed of the threads. This
process uses one thread and resets the generator before each mapping. So equal
jobs have equal results.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import numpy as np

# scotchpy imports these packages if they are installed, to draw graphs. The
# imports take longer than all others.
for _name in ('matplotlib', 'networkx'):
  sys.modules[_name] = None  # type: ignore[assignment]  # Cannot be found.

import scotchpy  # noqa: E402
from scotchpy import common  # noqa: E402

from gdp_grappler.placers import group_graph  # noqa: E402
from gdp_grappler.placers.partitioning import partition_process  # noqa: E402

# Speed of the fastest processor of an architecture; Scotch takes integers.
_MOST_SPEED = 10_000
# Integer distance that stands for the shortest distance.
_SHORTEST_LENGTH = 4


@dataclasses.dataclass(frozen=True, eq=False)
class ScotchJob(partition_process.PartitionJob):
  """One mapping.

  Scotch ignores its own seed if it is built to be reproducible. So the seed 0
  maps the graph as it is, and other seeds permute the vertices.

  Attributes:
    balanced: Whether Scotch prefers balance (STRATBALANCE) to quality
      (STRATQUALITY). Balance often cuts fewer bytes as well.
  """

  balanced: bool = True


def run(jobs: list[dict[str, Any]]) -> list[np.ndarray | None]:
  """The part of each vertex, int [V], for each job: fields of `ScotchJob`."""
  return partition_process.in_time([ScotchJob(**job) for job in jobs], _map)


def _map(job: ScotchJob) -> np.ndarray:
  count = job.graph.num_vertices
  order = np.arange(count)
  if job.seed:
    order = np.random.default_rng(job.seed).permutation(count)
  common.random_reset()
  graph = _graph(job.graph, order)
  strategy = scotchpy.Strat()
  strategy.graph_map_build(
      scotchpy.STRATBALANCE if job.balanced else scotchpy.STRATQUALITY,
      len(job.shares), job.imbalance)
  parts = job.fixed[order]
  if (parts < 0).all():
    graph.map(_architecture(job), strategy, parts)
  elif (parts < 0).any():
    graph.map_fixed(_architecture(job), strategy, parts)
  result = np.empty(count, int)
  result[order] = parts
  return result


def _graph(graph: group_graph.GroupGraph, order: np.ndarray) -> scotchpy.Graph:
  """The graph for Scotch; its vertex i is vertex `order[i]` of `graph`."""
  starts, neighbours, _ = graph.adjacency
  number = np.empty_like(order)
  number[order] = np.arange(len(order))
  counts = np.diff(starts)[order]
  new_starts = group_graph.starts_of(counts)
  edges = np.repeat(starts[order] - new_starts[:-1], counts) + np.arange(
      len(neighbours))
  result = scotchpy.Graph()
  result.build(verttab=new_starts, edgetab=number[neighbours[edges]],
               velotab=graph.integer_weights[order],
               edlotab=graph.integer_edges[edges])
  return result


def _architecture(job: ScotchJob) -> scotchpy.Arch:
  speeds = np.maximum(np.round(job.shares / job.shares.max() * _MOST_SPEED),
                      1).astype(int)
  result = scotchpy.Arch()
  if job.distances is None and speeds.min() == speeds.max():
    result.cmplt(len(speeds))
    return result
  if job.distances is None:
    result.cmpltw(speeds)
    return result
  count = len(speeds)
  apart = ~np.eye(count, dtype=bool)
  lengths = partition_process.lengths(job.distances, _SHORTEST_LENGTH)
  topology = scotchpy.Graph()
  topology.build(verttab=np.arange(count + 1) * (count - 1),
                 edgetab=np.nonzero(apart)[1].copy(), edlotab=lengths[apart],
                 velotab=speeds)
  result.build(topology, np.arange(count), scotchpy.Strat())
  return result
