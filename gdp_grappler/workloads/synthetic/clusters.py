"""Random clusters: cards from K40 to H100, mixed, on one or several hosts."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets

MOST = 16  # Largest number of GPUs of a random cluster.
_CARDS = ('K40', 'P100', 'V100', 'A100', 'H100')
_NETWORKS = ('eth10', 'eth25', 'eth100', 'ib', 'ib200', 'ib400')
# Probability of cards of several kinds.
_MIXED = .15
# Probability of several hosts.
_HOSTS = .3


def draw(rng: np.random.Generator, count: int) -> cluster_lib.Cluster:
  """Draws a cluster of `count` cards, 2 to 16."""
  card, other = (str(c) for c in rng.choice(_CARDS, 2, replace=False))
  kind = rng.random()
  if kind < _MIXED:
    first = int(rng.integers(1, count))
    return presets.preset(f'{first}x{card}+{count - first}x{other}')
  hosts = [h for h in range(2, count + 1) if not count % h]
  if kind < _MIXED + _HOSTS:
    number = int(rng.choice(hosts))
    network = str(rng.choice(_NETWORKS))
    return presets.preset(f'{number}x{count // number}x{card}-{network}')
  return presets.preset(f'{count}x{card}')
