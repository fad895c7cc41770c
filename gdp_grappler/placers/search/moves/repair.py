"""Moves that take a set of groups out of a placement and place it again.

Which groups says a move that was drawn; where they go, a list scheduler, by all
else as it is (`features.moves.featurizer`). What counts for it is drawn, too,
so that one set can be placed in many ways.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.features.moves import featurizer

# What such moves are called beside the kinds of `moves.Moves`.
KIND = 'repaired'


@dataclasses.dataclass(frozen=True)
class RepairConfig:
  """How often sets are placed anew, and by what.

  Weights are beside 1 for the end of a group; each is drawn between its two
  bounds, every order of magnitude alike.

  Attributes:
    share: Of the moves that are drawn, from 0 to 1.
    most: Groups of a set, 2 or more; larger ones move as they were drawn.
    late: Weight of the most that outputs of a group come too late by.
    careless: How often that counts nothing.
    sent: Weight of the seconds of its transfers.
    busy: Weight of the seconds that a device has to work in all.
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
  """bool [K], which of the moves were placed anew.

  Args:
    config: How often, and by what.
    features: Of the placement from which the moves are made.
    allowed: bool [G, D].
    candidates: int32 [K, G], where they lead; changed in place.
    rng: Of the choice and the weights.

  Raises:
    MemoryError: there is not enough.
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
  """float64 [count], every order of magnitude alike."""
  least, most = bounds
  return least * (most / least)**rng.random(count)
