"""Samples placements from a policy's probabilities.

If all units are drawn independently, neighbours have different devices at
almost every edge, and transfers dominate nearly every sample. So units are
drawn together. Each rollout partitions the unit graph into connected clusters
of a random size. The units of a cluster share one uniform random number, and
the device of each unit follows from it by the unit's inverse distribution
function. A shared number is still uniform. So the marginal distribution of each
unit is exactly the policy's, and only the joint distribution changes.

The clusters are either drawn for each rollout, or fixed in levels (`levels`),
from few large clusters to single units. With levels, the policy first learns
where the large parts of a graph belong.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.graph import coarsening
from gdp_grappler.placers.search.moves import neighbourhood
from placer_model.training import connected_sets
from placer_model.training import environment as environment_lib


class Neighbours:
  """Undirected edges between M units; heavy edges are likelier to join units.

  Attributes:
    num_units: Number M of units.
  """

  def __init__(self, num_units: int, edges: np.ndarray,
               edge_bytes: np.ndarray) -> None:
    """Takes edges of units, int [E, 2], and the bytes [E] that they carry."""
    self.num_units = num_units
    self._sources = np.concatenate([edges[:, 0], edges[:, 1]]).astype(np.int64)
    self._targets = np.concatenate([edges[:, 1], edges[:, 0]]).astype(np.int64)
    self._eagerness = np.tile(neighbourhood.eagerness(edge_bytes), 2)
    self._edges_of: list[list[connected_sets.Edge]] = [
        [] for _ in range(num_units)
    ]
    for source, target, eager in zip(self._sources.tolist(),
                                     self._targets.tolist(),
                                     self._eagerness.tolist()):
      self._edges_of[source].append((target, eager))

  def clusters(self, num_seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Draws a partition into connected clusters, int [M].

    Clusters grow from `num_seeds` random units, edge by edge, until they meet.
    A unit that no cluster reaches is a cluster of its own.
    """
    labels = np.full(self.num_units, -1)
    seeds = rng.choice(self.num_units, num_seeds, replace=False)
    labels[seeds] = np.arange(num_seeds)
    while True:
      frontier = np.flatnonzero((labels[self._sources] >= 0)
                                & (labels[self._targets] < 0))
      if not frontier.size:
        break
      grows = rng.random(frontier.size) < self._eagerness[frontier]
      chosen = rng.permutation(frontier[grows])
      labels[self._targets[chosen]] = labels[self._sources[chosen]]
    alone = labels < 0
    labels[alone] = num_seeds + np.arange(alone.sum())
    return labels

  def ball(self, start: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """Returns `size` connected units around `start`, int [S].

    The result is smaller if fewer units can be reached.
    """
    return connected_sets.grown(start, size, self._edges_of.__getitem__,
                                connected_sets.python_random(rng))


def levels(environment: environment_lib.Environment,
           aims: Sequence[int]) -> list[np.ndarray]:
  """Returns partitions of the units into clusters, the coarsest first.

  Args:
    environment: Environment of M units. If the units are the last partition of
      `coarsening.nested`, clusters consist of whole units. Otherwise a unit
      belongs to the cluster of its first op.
    aims: Desired numbers of clusters, see `coarsening.nested`.

  Returns:
    For each level int [M], the cluster of each unit, from 0. In the last level
    each unit is a cluster. Other levels with as many clusters are left out.
  """
  units, graph = environment.num_units, environment.graph
  first = np.zeros(units, np.int64)  # The first op of each unit.
  first[environment.units[::-1]] = np.arange(graph.num_ops)[::-1]
  partitions = [
      np.unique(labels[first], return_inverse=True)[1]
      for labels in coarsening.nested(
          graph, constraints.allowed_devices(graph, environment.cluster),
          environment.op_seconds, aims[:-1])
  ]
  return [
      *(labels for labels in partitions if labels.max(initial=-1) + 1 < units),
      np.arange(units)
  ]


def level_uniforms(clusters: np.ndarray, rollouts: int,
                   rng: np.random.Generator) -> np.ndarray:
  """Draws numbers in [0, 1) that are equal in each cluster, float64 [K, M].

  Args:
    clusters: int [M], cluster of each unit.
    rollouts: Number K of rollouts.
    rng: Source of the random numbers.
  """
  return rng.random((rollouts, clusters.max(initial=-1) + 1))[:, clusters]


def nats(probabilities: np.ndarray, clusters: np.ndarray) -> float:
  """Returns the approximate entropy of a rollout in nats.

  Args:
    probabilities: [M, D], rows sum to one.
    clusters: int [M], cluster of each unit; units of a cluster share a random
      number.

  Returns:
    Sum over clusters of the mean entropy of their units.
  """
  safe = np.maximum(probabilities, 1e-30)
  entropies = -(probabilities * np.log(safe)).sum(axis=1)
  return float((np.bincount(clusters, entropies) / np.bincount(clusters)).sum())


def correlated_uniforms(neighbours: Neighbours, rollouts: int,
                        rng: np.random.Generator) -> np.ndarray:
  """Draws numbers in [0, 1), equal in a rollout's clusters, float64 [K, M]."""
  rows = []
  for _ in range(rollouts):
    seeds = connected_sets.random_size(neighbours.num_units, rng)
    clusters = neighbours.clusters(seeds, rng)
    rows.append(rng.random(clusters.max() + 1)[clusters])
  return np.stack(rows)


def choose(probabilities: np.ndarray, uniforms: np.ndarray,
           rng: np.random.Generator) -> np.ndarray:
  """Maps uniform numbers to devices by inverse distribution functions.

  Each rollout lists the devices in a random order in its distribution
  functions, so that no two devices are always adjacent.

  Args:
    probabilities: [M, D], rows sum to one.
    uniforms: [K, M] in [0, 1).
    rng: Source of the order of devices.

  Returns:
    int32 [K, M].
  """
  num_devices = probabilities.shape[1]
  result = np.empty(uniforms.shape, np.int32)
  for row, uniform in enumerate(uniforms):
    order = rng.permutation(num_devices)
    bounds = np.cumsum(probabilities[:, order].astype(np.float64), axis=1)
    bounds /= bounds[:, -1:]
    index = (uniform[:, None] >= bounds).sum(axis=1)
    result[row] = order[np.minimum(index, num_devices - 1)]
  return result
