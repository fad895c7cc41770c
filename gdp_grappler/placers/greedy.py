"""What the network that chooses moves says by itself, unpriced."""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import anchored
from gdp_grappler.placers import best_of
from gdp_grappler.placers import move_filter
from gdp_grappler.placers import moves as moves_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import shipped_moves

# Moves that are described at a time: each is a placement of all groups.
_CHUNK = 256


@dataclasses.dataclass(frozen=True)
class GreedyConfig:
  """How much the network is believed.

  Attributes:
    draws: Moves that it is shown, at least 1.
    least_probability: Of a gain, in (0, 1); less likely moves are not made.
      The likeliest of thousands is likely to be too good to be true.
    most_moves: That are made together, at least 1. Each was told as if it were
      the only one.
  """

  draws: int = 4096
  least_probability: float = .9
  most_moves: int = 1

  def __post_init__(self) -> None:
    for name in 'draws', 'most_moves':
      if getattr(self, name) < 1:
        raise ValueError(f'{name} is {getattr(self, name)}; give 1 or more.')
    if not 0 < self.least_probability < 1:
      raise ValueError(f'least_probability is {self.least_probability}; give a '
                       'number between 0 and 1.')


@dataclasses.dataclass(frozen=True, eq=False)
class _Move:
  """Groups, int [J], that go to devices, int [J], and what is thought of it.

  Attributes:
    groups: That move.
    devices: Where to.
    score: Logarithm of the probability of a gain.
  """

  groups: np.ndarray
  devices: np.ndarray
  score: float


class GreedyPlacer:
  """The best anchor, changed by all that one forward pass is sure of.

  Anchors are priced, to know the best; what the network then says of moves from
  there is done unpriced. So, alone among the placers that begin with anchors,
  it may end with something slower: that is what it is there to show. Only
  what would not fit into memory is not done.
  """

  def __init__(self, config: GreedyConfig = GreedyConfig()) -> None:
    """Loads nothing yet."""
    self._config = config

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    anchor = best_of.BestOfPlacer(
        ('single_device', *anchored.ANCHORS)).place(problem)
    devices = anchor.devices[problem.graph.first_ops].astype(np.int32)
    changed = self._changed(devices, self._believed(problem, devices))
    fits = problem.evaluator.price_groups(problem.graph, changed[None],
                                          ceiling_s=None).valid[0]
    return placement_lib.from_groups(problem.graph,
                                     changed if fits else devices,
                                     problem.cluster)

  def _changed(self, devices: np.ndarray, moves: Sequence[_Move]) -> np.ndarray:
    """int32 [G], after those of the moves, the best first, that do not meet."""
    result, touched, made = devices.copy(), np.zeros(len(devices), bool), 0
    for move in sorted(moves, key=lambda move: -move.score):
      if made < self._config.most_moves and not touched[move.groups].any():
        result[move.groups] = move.devices
        touched[move.groups] = True
        made += 1
    return result

  def _believed(self, problem: placer_lib.Problem,
                devices: np.ndarray) -> list[_Move]:
    """Moves from int [G] of which the network is sure."""
    moves = moves_lib.Moves(problem)
    if not moves.movable.size:
      return []
    rng = np.random.default_rng(problem.seed)
    describer = move_filter.MoveDescriber(problem)
    result: list[_Move] = []
    for first in range(0, self._config.draws, _CHUNK):
      count = min(_CHUNK, self._config.draws - first)
      kinds = rng.choice(len(moves.kinds), count, p=moves.shares)
      rows = moves.draw_each(kinds, devices, rng)
      scores = move_filter.gain_scores(
          *shipped_moves.network().predict(
              describer.describe(devices, rows,
                                 [moves.kinds[kind] for kind in kinds])),
          weight=0.)
      for k in np.flatnonzero(scores >= np.log(self._config.least_probability)):
        groups = np.flatnonzero(rows[k] != devices)
        if groups.size:
          result.append(_Move(groups, rows[k][groups], float(scores[k])))
    return result
