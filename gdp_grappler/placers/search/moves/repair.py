"""Moves that take a set of groups out of a placement and place the set again.

This is destroy and repair, as in large neighbourhood search. A move was drawn,
and its set of groups is taken. A list scheduler chooses the new device of each
group in the set. All other groups stay where they are
(`features.moves.featurizer`). The weights of the list scheduler are random, so
that one set can be placed in many ways. Repairs for memory are another thing
(`memory_repair`).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.features.moves import featurizer

# Name of this kind of move, beside those of `moves.Moves`.
KIND = 'repaired'


@dataclasses.dataclass(frozen=True)
class RepairConfig:
  """Frequency of repairs, and weights of the list scheduler.

  The list scheduler puts a group on the device with the least cost. The cost is
  the time at which the group ends, plus three weighted terms. Each weight is
  drawn between two bounds, log-uniform.

  Attributes:
    share: Share of the drawn moves that are repaired, from 0 to 1.
    most: Groups of a set that is repaired, at the most; 2 or more.
    late: Bounds of the weight of the largest delay of the group's outputs.
    careless: Probability that this weight is 0.
    sent: Bounds of the weight of the seconds of the group's transfers.
    busy: Bounds of the weight of the seconds of all work on the device.
  """

  share: float = .2
  most: int = 3000
  late: tuple[float, float] = (.1, 10.)
  careless: float = .2
  sent: tuple[float, float] = (.03, 10.)
  busy: tuple[float, float] = (.01, 3.)

  def __post_init__(self) -> None:
    for name in ('share', 'careless'):
      if not 0 <= getattr(self, name) <= 1:
        raise ValueError(f'{name} is {getattr(self, name)}; give a share.')
    if self.most < 2:
      raise ValueError(f'most is {self.most}; give 2 or more.')
    for name in ('late', 'sent', 'busy'):
      least, most = getattr(self, name)
      if not 0 < least <= most < np.inf:
        raise ValueError(f'{name} is {least, most}; give two positive numbers, '
                         'the lesser one first.')


def repair(config: RepairConfig, features: featurizer.MoveFeaturizer,
           allowed: np.ndarray, candidates: np.ndarray,
           rng: np.random.Generator) -> np.ndarray:
  """Repairs some moves; bool [K] says which.

  Args:
    config: Frequency of repairs, and weights.
    features: Observed the placement before the moves.
    allowed: bool [G, D], devices that each group may have.
    candidates: int32 [K, G], placements after each move; changed in place.
    rng: Random numbers.

  Raises:
    MemoryError: there is not enough memory.
  """
  count = len(candidates)
  late = (_between(config.late, count, rng) *
          (rng.random(count) >= config.careless))
  weights = np.stack([
      late,
      _between(config.sent, count, rng),
      _between(config.busy, count, rng)
  ], axis=1)
  return features.replace(candidates,
                          rng.random(count) < config.share, allowed, weights,
                          config.most)


def _between(bounds: tuple[float, float], count: int,
             rng: np.random.Generator) -> np.ndarray:
  """float64 [count], random numbers between two bounds, log-uniform."""
  least, most = bounds
  return least * (most / least)**rng.random(count)
