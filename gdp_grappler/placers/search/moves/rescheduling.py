"""Moves that take a set of groups out of a placement and place the set again.

Large neighbourhood search calls such a move "destroy and repair". The set is
that of a move that was drawn. A list scheduler chooses the new device of each
group of the set. All other groups stay where they are
(`features.moves.featurizer`). The weights of the list scheduler are random. So
the scheduler can place one set in many ways. `memory_repair` is another method:
it makes a placement fit into memories.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.features.moves import featurizer

# Name of this kind of move, beside those of `moves.Moves`. Files of weights
# contain this name, so it stays.
KIND = 'repaired'


@dataclasses.dataclass(frozen=True)
class ReschedulingConfig:
  """Frequency of re-scheduling, and weights of the list scheduler.

  The list scheduler puts a group on the device with the least cost. The cost is
  the time at which the group ends, plus three weighted terms. Each weight is
  drawn between two bounds, log-uniform.

  Attributes:
    share: Share of the drawn moves that are re-scheduled, from 0 to 1.
    most: Largest number of groups of a set that is re-scheduled; 2 or more.
    late: Bounds of the weight of the largest delay of the group's outputs.
    zero_late: Probability that this weight is 0.
    sent: Bounds of the weight of the seconds of the group's transfers.
    busy: Bounds of the weight of the seconds of all work on the device.
  """

  share: float = .2
  most: int = 3000
  late: tuple[float, float] = (.1, 10.)
  zero_late: float = .2
  sent: tuple[float, float] = (.03, 10.)
  busy: tuple[float, float] = (.01, 3.)


def reschedule(config: ReschedulingConfig, features: featurizer.MoveFeaturizer,
               allowed: np.ndarray, candidates: np.ndarray,
               rng: np.random.Generator) -> np.ndarray:
  """Re-schedules some moves; bool [K] marks them.

  Args:
    config: Frequency of re-scheduling, and weights.
    features: Observed the placement before the moves.
    allowed: bool [G, D], devices that each group may have.
    candidates: int32 [K, G], placements after each move; changed in place.
    rng: Random numbers.

  Raises:
    MemoryError: there is not enough memory.
  """
  count = len(candidates)
  late = (_between(config.late, count, rng) *
          (rng.random(count) >= config.zero_late))
  weights = np.stack([
      late,
      _between(config.sent, count, rng),
      _between(config.busy, count, rng)
  ], axis=1)
  return features.reschedule(candidates,
                             rng.random(count) < config.share, allowed, weights,
                             config.most)


def _between(bounds: tuple[float, float], count: int,
             rng: np.random.Generator) -> np.ndarray:
  """float64 [count], random numbers between two bounds, log-uniform."""
  least, most = bounds
  return least * (most / least)**rng.random(count)
