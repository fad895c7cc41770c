"""Improves the best of some placements by moves of sets of ops.

The policy looks at the best placement and its simulated step, draws moves of
sets of ops from it (`moves`), and prices those that a chooser puts first. The
chooser learns from what gained (`gain_learning`). Moves that gained are tried
together, and the best of all placements is looked at next. Improving a whole
placement move by move is the way of Placeto (Addanki et al., NeurIPS 2019).
"""

from __future__ import annotations

import math

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.placers.policy import choosers
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import neighbourhood
from gdp_grappler.placers.search.moves import repair as repair_lib

# How often a further move is added to one: some pay only together.
_COMPOUND = .25
_REPAIR = repair_lib.RepairConfig()
# Moves of one look that are tried together: two of them, at most three.
_TOGETHER = 3


class Improver:
  """Moves from the best placement so far, of which a few are priced."""

  def __init__(self, found: priced_placements.PricedPlacements,
               describer: move_filter.MoveDescriber,
               chooser: choosers.MoveChooser,
               config: policy_config.PolicyConfig, rng: np.random.Generator,
               moves: moves_lib.Moves, exact: int | None = None) -> None:
    """Looks at nothing yet.

    Args:
      found: Placements of G groups that were priced, at least one; what is
        priced here joins them.
      describer: Of the same groups.
      chooser: Of the moves.
      config: How many are drawn and priced.
      rng: Of the moves.
      moves: Of the same groups.
      exact: How many of the best placements need their exact prices; by default
        all.
    """
    self._exact = exact
    self._found, self._describer, self._chooser = found, describer, chooser
    self._config, self._rng = config, rng
    self._moves = moves

  def run(self, deadline: deadlines.Deadline = deadlines.NEVER) -> None:
    """Looks again and again, until so many are priced or the time is over."""
    if not self._moves.movable.size:
      return
    while not deadline.passed and self._left:
      before = self._left
      self._look()
      if self._left == before:
        return  # All that was drawn is known.

  @property
  def _left(self) -> int:
    """How many more are to be priced."""
    return max(self._config.prices - len(self._found.prices), 0)

  @property
  def _ceiling_s(self) -> float:
    """Step above which nobody asks for the exact price, in seconds."""
    if self._exact is None:
      return math.inf
    return self._found.ceiling_s(self._exact)

  def _look(self) -> None:
    """Prices the first moves from the best placement, and some together."""
    here, key = self._found.best, min(self._found.prices.keys())
    rows, kinds = self._drawn(here)
    if not kinds:
      return
    scores = self._chooser.scores(here, rows, kinds)
    first = np.argsort(-scores,
                       kind='stable')[:min(self._config.at_once, self._left)]
    chosen = rows[first]
    prices = self._found.see(chosen, ceiling_s=self._ceiling_s)
    keys = prices.keys()
    gained = np.array([price < key for price in keys])
    self._chooser.learn(first, gained)
    gaining = [chosen[k] for k in prices.ranking() if gained[k]]
    together = neighbourhood.unions(here, gaining[:_TOGETHER])[:self._left]
    if together:
      self._found.see(together, ceiling_s=self._ceiling_s)

  def _drawn(self, here: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Placements int32 [K, G], none known, none twice, and kinds [K] of moves.

    Args:
      here: int [G], where the moves are from.
    """
    moves, rng = self._moves, self._rng
    kinds = rng.choice(len(moves.kinds), self._config.draws, p=moves.shares)
    rows = moves.draw_each(kinds, here, rng, _COMPOUND)
    names = self._describer.repair(here, rows,
                                   [moves.kinds[kind] for kind in kinds],
                                   _REPAIR, rng)
    fresh = self._found.fresh(rows)
    return rows[fresh], [names[k] for k in fresh]
