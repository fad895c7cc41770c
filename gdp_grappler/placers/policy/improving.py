"""Improves the best of some placements by moves of sets of ops.

The placer `gdp_policy` repeats one round. It draws moves of sets of ops from
the best placement (`moves`). A scorer rates the moves by features of the
simulated step, and the moves with the highest scores are priced. The scorer
learns which moves gained (`gain_learning`). Unions of moves that gained are
priced, too. Placeto (Addanki et al., NeurIPS 2019) also improves a whole
placement move by move.
"""

from __future__ import annotations

import math
from typing import Protocol, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import neighbourhood

# Probability that one more move is added to a move: some moves gain only
# together.
_COMPOUND = .25
# Fewest moves to draw in a round. With fewer, a round would rarely find a gain.
_FEWEST_DRAWS = 32
# Largest number of moves in a union. They are the best that gained in a round.
_TOGETHER = 3


class Scorer(Protocol):
  """Scores moves of one problem; moves with high scores are priced first."""

  def scores(self, incumbent: np.ndarray, candidates: np.ndarray,
             kinds: Sequence[str]) -> np.ndarray:
    """float [K], scores of moves.

    Args:
      incumbent: int [G], placement before the moves.
      candidates: int [K, G], placement after each move.
      kinds: [K], kinds of the moves.
    """

  def learn(self, chosen: np.ndarray, gained: np.ndarray) -> None:
    """Learns from the prices of moves.

    Args:
      chosen: int [C], indices of the latest candidates that were priced.
      gained: bool [C], whether each of them was better than the incumbent.
    """


class Improver:
  """Improves the best placement so far, with few prices."""

  def __init__(self, priced: priced_placements.PricedPlacements, scorer: Scorer,
               config: policy_config.PolicyConfig, rng: np.random.Generator,
               moves: moves_lib.Moves, exact: int | None = None) -> None:
    """Prepares the rounds.

    Args:
      priced: Priced placements of G groups, at least one; gets all others.
      scorer: Scorer of the moves.
      config: Numbers of moves to draw and to price.
      rng: Random numbers of the moves.
      moves: Draws moves of the same groups.
      exact: Number of the best placements that need exact prices; None means
        all placements.
    """
    self._exact = exact
    self._priced, self._scorer = priced, scorer
    self._config, self._rng, self._moves = config, rng, moves

  def run(self, deadline: deadlines.Deadline = deadlines.NEVER,
          round_s: float | None = None) -> None:
    """Repeats rounds until enough placements are priced or time is over.

    Args:
      deadline: End of the time.
      round_s: Upper bound of the seconds of the first round, with all of its
        draws. Rounds draw fewer moves if there is too little time. None means
        that the number of draws does not depend on the clock.
    """
    if not self._moves.movable.size:
      return
    draws = self._config.draws
    while not deadline.passed and self._left:
      if round_s is not None and deadline.left_s is not None:
        draws = self._affordable(draws, round_s, deadline.left_s)
      before, begin_s = self._left, deadline.clock()
      self._look(draws)
      if self._left == before:
        return  # All moves of the round lead to known placements.
      if round_s is not None:
        round_s = deadline.clock() - begin_s

  @property
  def _left(self) -> int:
    """Number of placements that may still be priced."""
    return max(self._config.prices - len(self._priced.prices), 0)

  @property
  def _ceiling_s(self) -> float:
    """Step in seconds above which the exact price is not needed."""
    if self._exact is None:
      return math.inf
    return self._priced.ceiling_s(self._exact)

  def _affordable(self, draws: int, round_s: float, left_s: float) -> int:
    """Number of moves to draw, so that there is time for several rounds.

    A round spends most of its time on the features of the moves. Without this
    limit, a search of a large graph in a short time would end after one round.

    Args:
      draws: Number of moves drawn in the latest round.
      round_s: Seconds of that round.
      left_s: Seconds that are left.
    """
    config = self._config
    affordable = draws * left_s / max(config.rounds * round_s, 1e-9)
    return int(min(max(affordable, _FEWEST_DRAWS), config.draws))

  def _look(self, draws: int) -> None:
    """Runs one round: prices single moves, then unions of those that gained.

    Args:
      draws: Number of moves to draw.
    """
    here, key = self._priced.best, min(self._priced.prices.keys())
    rows, kinds = self._drawn(here, draws)
    if not kinds:
      return
    scores = self._scorer.scores(here, rows, kinds)
    first = np.argsort(-scores,
                       kind='stable')[:min(self._config.at_once, self._left)]
    chosen = rows[first]
    prices = self._priced.add(chosen, ceiling_s=self._ceiling_s)
    keys = prices.keys()
    gained = np.array([price < key for price in keys])
    self._scorer.learn(first, gained)
    gaining = [chosen[k] for k in prices.ranking() if gained[k]]
    together = neighbourhood.unions(here, gaining[:_TOGETHER])[:self._left]
    if together:
      self._priced.add(together, ceiling_s=self._ceiling_s)

  def _drawn(self, here: np.ndarray,
             draws: int) -> tuple[np.ndarray, list[str]]:
    """Different unknown placements int32 [K, G], and kinds [K] of their moves.

    Args:
      here: int [G], placement before the moves.
      draws: Number of moves to draw.
    """
    moves, rng = self._moves, self._rng
    kinds = rng.choice(len(moves.kinds), draws, p=moves.shares)
    rows = moves.draw_each(kinds, here, rng, _COMPOUND)
    fresh = self._priced.unpriced(rows)
    return rows[fresh], [moves.kinds[kinds[k]] for k in fresh]
