"""Exchange of equal devices in placements.

If two equal cards are exchanged in a placement, the step time stays nearly the
same: only waiting for shared wires, such as those of a PCIe switch, may differ.
A policy that draws both placements equally often learns nothing from them: one
of them favours a card for a unit as much as the other favours the other card,
and only chance breaks the tie. So each rollout is replaced by the exchanged
version that is likeliest under the policy. This version counts with the price
of the rollout, so nothing more has to be priced.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib

# Largest number of passes over all pairs of devices.
_SWEEPS = 4


def equal_sets(cluster: cluster_lib.Cluster,
               allowed: np.ndarray) -> list[tuple[int, ...]]:
  """Returns sets of two or more devices with equal figures and equal links.

  The devices may differ in their names, and in the wires that they share.

  Args:
    cluster: Cluster of D devices.
    allowed: bool [M, D], allowed devices of each unit.
  """
  sets: list[list[int]] = []
  for device in range(cluster.num_devices):
    for known in sets:
      if _are_equal(cluster, allowed, known[0], device):
        known.append(device)
        break
    else:
      sets.append([device])
  return [tuple(known) for known in sets if len(known) > 1]


def aligned(decisions: np.ndarray, liking: np.ndarray,
            sets: Sequence[Sequence[int]]) -> np.ndarray:
  """Exchanges equal devices in each rollout for the highest score.

  Args:
    decisions: int [K, M], device of each unit in each rollout.
    liking: float [M, D], score of each device for each unit. The score of a
      rollout is the sum over its decisions.
    sets: Sets of equal devices, see `equal_sets`.

  Returns:
    int [K, M].
  """
  devices = np.arange(liking.shape[1])
  chosen = (decisions[:, :, None] == devices).astype(np.float64)  # [K, M, D]
  # [K, a, b]: score of the units on device a if they were on device b.
  gains = chosen.transpose(0, 2, 1) @ liking
  return np.stack([
      _order(gain, sets)[rollout] for gain, rollout in zip(gains, decisions)
  ]).astype(decisions.dtype)


def _order(gain: np.ndarray, sets: Sequence[Sequence[int]]) -> np.ndarray:
  """Returns the device that replaces each device, int [D].

  A local search exchanges pairs.
  """
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


def _are_equal(cluster: cluster_lib.Cluster, allowed: np.ndarray, a: int,
               b: int) -> bool:
  first, second = cluster.devices[a], cluster.devices[b]
  own = all(
      list(shared).count(shared[index]) == 1
      for shared in (cluster.compute_units, cluster.memory_pools)
      for index in (a, b))
  same_fields = dataclasses.replace(first, name=second.name,
                                    compute=second.compute,
                                    memory=second.memory) == second
  exchanged = np.arange(cluster.num_devices)
  exchanged[[a, b]] = b, a
  links = all((figures[np.ix_(exchanged, exchanged)] == figures).all()
              for figures in cluster.link_arrays[:2])
  return own and same_fields and links and bool(
      (allowed[:, a] == allowed[:, b]).all())
