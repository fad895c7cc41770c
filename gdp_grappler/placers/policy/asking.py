"""Asks the policy of moves before a search, where the search is worth it."""

from __future__ import annotations

from typing import Callable

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib

# Share of the search's time that the policy may take.
_SHARE = .25
# The same share if a coarse graph is searched as well.
_OF_REPEATED = .1
# The same share if the number of prices ends the search, and not the clock.
_BY_COUNT = .5
# Seconds that a search must be worth, beside `_OP_S` per op: a shorter search
# ends before the policy does.
_LEAST_S = .1
_OP_S = 1e-4
# Other placers have proposed maps and cuts: the policy begins with the best.
_BESIDE = policy_config.PolicyConfig(maps=0, cuts=0, schedules=6)
# Placements of other placers among the drafts.
_STARTS = 4


def share(by_count: bool, repeats: bool) -> float:
  """What the policy may take of the time.

  Args:
    by_count: Whether what is priced, and not the clock, is to end the search.
    repeats: Whether a smaller graph is searched as well.
  """
  return _BY_COUNT if by_count else _OF_REPEATED if repeats else _SHARE


def asked(
    problem: placer_lib.Problem, worth_s: float, budget_s: float,
    clock: Callable[[], float], moves: moves_lib.Moves, starts: np.ndarray,
    network: move_network.MoveNetwork | None = None
) -> priced_placements.PricedPlacements | None:
  """What the policy has priced; None where it does not pay to ask it.

  Args:
    problem: What is to be placed.
    worth_s: Seconds that the search is worth.
    budget_s: Seconds that the policy has.
    clock: Seconds since any moment.
    moves: Of the problem.
    starts: int [S, G], what others have found, the best first.
    network: Chooses moves; by default as of `move_policy.MovePolicyPlacer`.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  if worth_s < _LEAST_S + _OP_S * problem.graph.num_ops:
    return None
  return move_policy.MovePolicyPlacer(config=_BESIDE, network=network).found(
      problem.until(deadlines.within(budget_s, clock)), moves,
      [*starts[:_STARTS]], search_config.DEFAULT.priorities.starts)
