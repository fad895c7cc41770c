"""Samples placements from a policy's probabilities.

Drawn independently, neighbours part at almost every edge, and nearly every
sample drowns in transfers. So units draw together: each rollout splits the
unit graph into connected clusters of a random size, and the units of a cluster
share the uniform number from which each one's device follows by its own
inverse distribution function. A shared uniform number is still uniform, so
every unit's marginal is exactly the policy's; only the joint changes.

The clusters are drawn anew for each rollout, or stand in levels (`levels`), a
few large ones first and single units last, so that what is learned early is
where the large parts of a graph belong.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.graph import coarsening
from gdp_grappler.placers.search.moves import neighbourhood
from placer_model.training import environment as environment_lib


class Neighbours:
  """Undirected edges between M units, the heavy ones sooner to join units.

  Attributes:
    num_units: M.
  """

  def __init__(self, num_units: int, edges: np.ndarray,
               edge_bytes: np.ndarray) -> None:
    """From int [E, 2] edges of units and the bytes [E] they carry."""
    self.num_units = num_units
    self._sources = np.concatenate([edges[:, 0], edges[:, 1]]).astype(np.int64)
    self._targets = np.concatenate([edges[:, 1], edges[:, 0]]).astype(np.int64)
    self._eagerness = np.tile(neighbourhood.eagerness(edge_bytes), 2)
    self._edges_of: list[list[neighbourhood.Edge]] = [
        [] for _ in range(num_units)
    ]
    for source, target, eager in zip(self._sources.tolist(),
                                     self._targets.tolist(),
                                     self._eagerness.tolist()):
      self._edges_of[source].append((target, eager))

  def clusters(self, num_seeds: int, rng: np.random.Generator) -> np.ndarray:
    """int [M], a random partition into connected clusters.

    Clusters grow from `num_seeds` random units, edge by edge, until they
    meet. Units that no seed reaches are clusters of their own.
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
    """int [S], `size` connected units around `start`, or all in reach."""
    return neighbourhood.grown(start, size, self._edges_of.__getitem__,
                               neighbourhood.plain(rng))


def levels(environment: environment_lib.Environment,
           aims: Sequence[int]) -> list[np.ndarray]:
  """Partitions of the units into clusters, from few and large to single units.

  Args:
    environment: Of M units. Where they are the last of `coarsening.nested`,
      clusters are sets of whole units; else units belong where their first op
      does.
    aims: As of `coarsening.nested`.

  Returns:
    Each int [M], the cluster of each unit, from 0; the last level's are the
    units themselves. Others that have single units are left out.
  """
  units, graph = environment.num_units, environment.graph
  first = np.zeros(units, np.int64)  # Op of each unit.
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
  """float64 [K, M] in [0, 1), equal within the clusters int [M] of a level."""
  return rng.random((rollouts, clusters.max(initial=-1) + 1))[:, clusters]


def nats(probabilities: np.ndarray, clusters: np.ndarray) -> float:
  """How much chance there is in a rollout of a level.

  Args:
    probabilities: [M, D], rows sum to one.
    clusters: int [M], that share a number each.

  Returns:
    Sum over clusters of the mean entropy of their units.
  """
  safe = np.maximum(probabilities, 1e-30)
  entropies = -(probabilities * np.log(safe)).sum(axis=1)
  return float((np.bincount(clusters, entropies) / np.bincount(clusters)).sum())


def correlated_uniforms(neighbours: Neighbours, rollouts: int,
                        rng: np.random.Generator) -> np.ndarray:
  """float64 [K, M] in [0, 1), equal within the clusters of a rollout."""
  rows = []
  for _ in range(rollouts):
    seeds = neighbourhood.random_size(neighbours.num_units, rng)
    clusters = neighbours.clusters(seeds, rng)
    rows.append(rng.random(clusters.max() + 1)[clusters])
  return np.stack(rows)


def choose(probabilities: np.ndarray, uniforms: np.ndarray,
           rng: np.random.Generator) -> np.ndarray:
  """Devices by inverse distribution functions.

  The order in which a rollout's devices follow each other in the distribution
  function is random, so that no two devices are neighbours for good.

  Args:
    probabilities: [M, D], rows sum to one.
    uniforms: [K, M] in [0, 1).
    rng: Of the order.

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
