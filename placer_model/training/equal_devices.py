"""Devices that may be exchanged for each other.

A placement and its mirror image, with two equal cards exchanged, take the same
step. A policy that draws both equally often learns nothing from them: whatever
one says for a card, the other says against it, and only chance leads away from
there. So each rollout is read as that of its images which is the most like what
the policy says already. Nothing more is priced for that.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib

# Pairs are tried so often at most.
_SWEEPS = 4


def twins(cluster: cluster_lib.Cluster,
          allowed: np.ndarray) -> list[tuple[int, ...]]:
  """Sets of two and more devices that nothing but their names tells apart.

  Args:
    cluster: D devices.
    allowed: bool [M, D], what units may be on.
  """
  sets: list[list[int]] = []
  for device in range(cluster.num_devices):
    for known in sets:
      if _are_twins(cluster, allowed, known[0], device):
        known.append(device)
        break
    else:
      sets.append([device])
  return [tuple(known) for known in sets if len(known) > 1]


def aligned(decisions: np.ndarray, liking: np.ndarray,
            sets: Sequence[Sequence[int]]) -> np.ndarray:
  """int [K, M], each rollout with twins exchanged so that it is liked best.

  Args:
    decisions: int [K, M].
    liking: float [M, D], of each decision; those of a rollout add up.
    sets: Of `equal_devices`.
  """
  devices = np.arange(liking.shape[1])
  chosen = (decisions[:, :, None] == devices).astype(np.float64)  # [K, M, D]
  # How much is gained where what is on the first is on the second, [K, D, D].
  gains = chosen.transpose(0, 2, 1) @ liking
  return np.stack([
      _order(gain, sets)[rollout] for gain, rollout in zip(gains, decisions)
  ]).astype(decisions.dtype)


def _order(gain: np.ndarray, sets: Sequence[Sequence[int]]) -> np.ndarray:
  """int [D], the device that takes each one's place; by pairwise exchange."""
  order = np.arange(len(gain))
  pairs = [pair for one in sets for pair in itertools.combinations(one, 2)]
  for _ in range(_SWEEPS):
    before = order.copy()
    for a, b in pairs:
      as_is = gain[a, order[a]] + gain[b, order[b]]
      if gain[a, order[b]] + gain[b, order[a]] > as_is:
        order[a], order[b] = order[b], order[a]
    if (order == before).all():
      break
  return order


def _are_twins(cluster: cluster_lib.Cluster, allowed: np.ndarray, a: int,
               b: int) -> bool:
  first, second = cluster.devices[a], cluster.devices[b]
  own = all(
      list(shared).count(shared[index]) == 1
      for shared in (cluster.compute_units, cluster.memory_pools)
      for index in (a, b))
  alike = dataclasses.replace(first, name=second.name, compute=second.compute,
                              memory=second.memory) == second
  exchanged = np.arange(cluster.num_devices)
  exchanged[[a, b]] = b, a
  links = all((figures[np.ix_(exchanged, exchanged)] == figures).all()
              for figures in cluster.link_arrays[:2])
  return own and alike and links and bool(
      (allowed[:, a] == allowed[:, b]).all())
