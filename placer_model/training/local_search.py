"""Hill climbing around the best placement so far.

Each proposal moves one connected cluster of units to another device. Moves that
shorten the step are then combined, the best first, because the gains of moves
in different parts of the graph add up. So one batch of proposals can advance
the search by many moves.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.placers.search.moves import neighbourhood
from placer_model.training import connected_sets
from placer_model.training import environment as environment_lib
from placer_model.training import exploration


class LocalSearch:
  """Proposes and prices moves of one graph."""

  def __init__(self, environment: environment_lib.Environment,
               neighbours: exploration.Neighbours) -> None:
    self._environment = environment
    self._neighbours = neighbours
    self._movable = np.flatnonzero(environment.allowed.sum(axis=1) > 1)

  @property
  def can_move(self) -> bool:
    """Whether any unit has a choice of devices."""
    return bool(self._movable.size)

  def improve(self, decisions: np.ndarray, step_time_s: float, trials: int,
              rng: np.random.Generator) -> environment_lib.Trials | None:
    """Prices about `trials` neighbours of a placement.

    Args:
      decisions: int [M], the placement.
      step_time_s: Price of the placement; infinite if it is invalid.
      trials: Number of placements to price. A part is reserved for combinations
        of moves that gained.
      rng: Source of the moves.

    Returns:
      All priced placements; None if no unit can move.
    """
    if not self.can_move or not trials:
      return None
    singles = max(trials * 3 // 4, 1)
    first = self._environment.price(
        np.stack([self._flip(decisions, rng) for _ in range(singles)]))
    gaining = np.flatnonzero(first.step_time_s < step_time_s)
    if gaining.size < 2:
      return first
    ranked = gaining[np.argsort(first.step_time_s[gaining], kind='stable')]
    second = self._environment.price(
        np.stack(
            neighbourhood.unions(
                decisions, first.decisions[ranked[:trials - singles + 1]])))
    return first.followed_by(second)

  def _flip(self, decisions: np.ndarray,
            rng: np.random.Generator) -> np.ndarray:
    """Returns `decisions` with a cluster moved to another device, int [M].

    Units of the cluster that may not have the device stay.
    """
    allowed = self._environment.allowed
    start = rng.choice(self._movable)
    targets = np.flatnonzero(allowed[start])
    target = rng.choice(targets[targets != decisions[start]])
    size = min(connected_sets.random_size(self._neighbours.num_units, rng),
               max(self._neighbours.num_units // 2, 1))
    units = self._neighbours.ball(start, size, rng)
    result = decisions.copy()
    result[units[allowed[units, target]]] = target
    return result
