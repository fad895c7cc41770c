"""The placer `gdp_policy`: it improves drafts by few moves.

The move network chooses the moves. Despite its name, the placer does not need
the policy (GDP's network). In the functions of this module, "the policy" means
the placer.
"""

from __future__ import annotations

import enum
from typing import Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import drafts
from gdp_grappler.placers.policy import improving
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import named_policy
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import shipped_moves

# Share of the time that drafts may take, before the first one is priced.
_DRAFTS_SHARE = .5
# Number of placements that the placer proposes, the best by price. With control
# edges, another one than the first may be the fastest.
_NUM_PROPOSALS = 4
# Rounds in which schedules that overflow a memory are made again, as in
# `list_scheduling.candidates`.
_MEMORY_ROUNDS = 4
# Number of schedules that are made again in one round.
_SCHEDULES_PER_ROUND = 4
# Number of drafts that are priced together.
_BATCH = 8
_DEFAULT = policy_config.PolicyConfig()
# Number of placements of other placers with which the policy begins in the
# default placer.
_STARTS = 4


class MoveChoice(enum.StrEnum):
  """The way in which moves are chosen."""

  TRAINED = 'trained'
  UNTRAINED = 'untrained'  # By a network of the same shape, not trained.
  RANDOM = 'random'


class MovePolicyPlacer:
  """One device, maps by coordinates, cuts and schedules, improved by moves.

  The placer prices drafts (`drafts`), and then moves from the best placement. A
  move gives another device to a set of ops: a layer, a time step, a branch, a
  unit, or ops that run one after the other. A network chooses the moves to
  price by features of the simulated step (`improving`). The placer ends after
  few prices, or when its time is over.
  """

  def __init__(self, policy: str | None = None,
               choice: str = MoveChoice.TRAINED,
               config: policy_config.PolicyConfig = _DEFAULT,
               network: move_network.MoveNetwork | None = None) -> None:
    """Loads the network in a folder, if one is named.

    Args:
      policy: A folder that `gdp_train` or `gdp_pretrain` wrote. It has a move
        network, or GDP's network, whose proposals are priced after the drafts.
        None means the move network in the folder of the environment variable
        GDP_POLICY, or else the shipped one.
      choice: The way in which moves are chosen, one of `MoveChoice`.
      config: Numbers of drafts, moves and prices.
      network: The move network; it overrides the folders.

    Raises:
      PolicyMismatchError: the folder has no network that this version can use.
    """
    self._network = network or named_policy.read(policy)
    self._one_shot: learned.LearnedPlacer | None = None
    if self._network is None and policy is not None:
      # No time budget includes the time of loading, so loading comes first.
      self._one_shot = learned.LearnedPlacer(policy)
    self._choice, self._config = MoveChoice(choice), config

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`. Placements of all ops on one device are candidates, too.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
    if not problem.graph.num_ops:
      return (placement_lib.of_nothing(problem.cluster),)
    deadline = problem.deadline()
    priced = self.search(problem)
    best = memory_fit.best_fitting(problem, priced, deadline)
    others = (placement_lib.from_groups(problem.graph, row, problem.cluster)
              for row in priced.ranked(_NUM_PROPOSALS)[1:])
    return (best, *others)

  def search(self, problem: placer_lib.Problem,
             moves: moves_lib.Moves | None = None,
             starts: Sequence[np.ndarray] = (), exact: int = _NUM_PROPOSALS,
             by_count: bool = False) -> priced_placements.PricedPlacements:
    """All placements that the placer has priced.

    The best placements have exact prices. The other placements are slower, but
    their prices are not exact (`PricedPlacements.add`). Drafts that the placer
    has made have a source (`Drafts`), and the draft of each source with the
    shortest estimate has an exact price. All other placements have no source.

    Args:
      problem: The problem to place. Its time budget holds, but some drafts are
        always priced.
      moves: Draws moves of the problem; None means moves of all kinds. Searches
        may share the object.
      starts: int [G] each, further drafts.
      exact: Number of the best placements that have exact prices.
      by_count: Whether the number of prices should end the search even if the
        problem has a time budget.
    """
    deadline, budget_s = problem.deadline(), problem.time_budget_s
    begin_s = problem.clock()
    describer = move_scoring.MoveDescriber(problem)
    drawn = drafts.Drafts(
        problem, self._config, describer,
        deadlines.within(None if budget_s is None else _DRAFTS_SHARE * budget_s,
                         problem.clock))
    priced = priced_placements.PricedPlacements(problem.graph,
                                                problem.evaluator)
    drafted = _with_starts(drawn, starts)[:self._config.prices]
    # The first prices give a ceiling, so that further prices take less time.
    for begin in range(0, len(drafted), _BATCH):
      sources, rows = zip(*drafted[begin:begin + _BATCH])
      priced.add(rows, sources, priced.ceiling_s(exact))
    for _ in range(_MEMORY_ROUNDS):
      left = max(self._config.prices - len(priced.prices), 0)
      again = drawn.with_less_memory(priced, min(_SCHEDULES_PER_ROUND, left),
                                     deadline)
      if not len(again):
        break
      priced.add(again, drafts.SCHEDULES, priced.ceiling_s(exact))
    if self._one_shot is not None:
      proposed = self._one_shot.candidates(problem)
      priced.add(proposed[:, problem.graph.first_ops])
    # A round takes less time than the drafts.
    round_s = (None if by_count or problem.ends_by_count else problem.clock()
               - begin_s)
    scorer = self._scorer(describer, problem.seed)
    improving.Improver(priced, scorer, self._config,
                       np.random.default_rng(problem.seed), moves or
                       moves_lib.Moves(problem), exact).run(deadline, round_s)
    return priced

  def _scorer(self, describer: move_scoring.MoveDescriber,
              seed: int) -> move_scoring.MoveScorer:
    rng = np.random.default_rng((seed, 1))
    network = self._network or shipped_moves.network()
    if self._choice == MoveChoice.RANDOM:
      return move_scoring.RandomScorer(describer, network, rng)
    if self._choice == MoveChoice.UNTRAINED:
      network = move_network.untrained(network, rng)
    return move_scoring.MoveScorer(describer, network, self._config.gain_weight)


def _with_starts(drawn: drafts.Drafts,
                 starts: Sequence[np.ndarray]) -> list[tuple[str, np.ndarray]]:
  """Sources and rows int [G] of all drafts, in the order of pricing.

  The draft of each source with the shortest estimate comes early, because the
  first prices are exact.

  Args:
    drawn: The drafts that the policy has made.
    starts: int [G] each, further drafts, without a source.
  """
  own = [*zip(drawn.sources, drawn.rows, strict=True)]
  first = {drawn.sources.index(source) for source in drawn.sources}
  others = [own[k] for k in range(len(own)) if k not in first]
  return [
      *(('', row) for row in starts), *(own[k] for k in sorted(first)), *others
  ]


def own_s(problem: placer_lib.Problem, left_s: float, repeats: bool) -> float:
  """Seconds of a search that the policy may take.

  After few prices, the policy has faster placements than other placers. After
  more prices, a search shortens the step by more in the same time. So the
  policy gets only a part of the time.

  Args:
    problem: The problem to place.
    left_s: Seconds that are left for the policy and the search.
    repeats: Whether a coarse graph is searched, too.
  """
  config = search_config.DEFAULT.time
  if problem.ends_by_count:
    return config.moves_by_count * left_s
  share = config.moves_with_coarse if repeats else config.moves
  return min(max(share * left_s, config.moves_enough * needed_s(problem)),
             config.moves_most * left_s)


def has_time(problem: placer_lib.Problem, left_s: float) -> bool:
  """Whether the policy can take part if some seconds are left."""
  most = search_config.DEFAULT.time.moves_most
  return problem.ends_by_count or _may_begin(problem, most * left_s)


def leaves_time(problem: placer_lib.Problem, seconds: float) -> bool:
  """Whether anchors (placers of starts) after the policy have enough time."""
  least_s = search_config.DEFAULT.time.anchors_needed * needed_s(problem)
  return problem.ends_by_count or seconds >= least_s


def _may_begin(problem: placer_lib.Problem, seconds: float) -> bool:
  """Whether the policy can price enough placements in some seconds."""
  return seconds >= search_config.DEFAULT.time.moves_begun * needed_s(problem)


def needed_s(problem: placer_lib.Problem) -> float:
  """Seconds in which the policy can price most of its placements."""
  config = search_config.DEFAULT.time
  return config.moves_least_s + config.moves_op_s * problem.graph.num_ops


def before_search(
    problem: placer_lib.Problem, worth_s: float, budget_s: float,
    moves: moves_lib.Moves, starts: np.ndarray,
    network: move_network.MoveNetwork | None = None
) -> priced_placements.PricedPlacements | None:
  """Placements that the policy has priced; None if it does not take part.

  Args:
    problem: The problem to place.
    worth_s: Seconds that the search is worth.
    budget_s: Seconds that the policy may take.
    moves: Draws moves of the problem.
    starts: int [S, G], placements of other placers, the best first.
    network: The move network; by default that of `MovePolicyPlacer`.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  # A repeatable result must not depend on the clock, and `budget_s` does. So
  # only `worth_s` decides.
  if problem.ends_by_count:
    takes_part = worth_s >= needed_s(problem)
  else:
    takes_part = _may_begin(problem, budget_s)
  if not takes_part:
    return None
  return MovePolicyPlacer(network=network).search(
      problem.until(deadlines.within(budget_s, problem.clock)), moves,
      [*starts[:_STARTS]], search_config.DEFAULT.start.best,
      problem.ends_by_count)
