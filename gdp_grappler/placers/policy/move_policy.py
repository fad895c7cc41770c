"""A placer that improves drafts by moves that a network chooses, few priced."""

from __future__ import annotations

import enum
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import choosers
from gdp_grappler.placers.policy import drafts
from gdp_grappler.placers.policy import improving
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import shipped_moves

# What drafts may take of the time.
_DRAFTS_SHARE = .5
# How many placements it tells of, the best by price: which is the best with
# control edges no price tells.
_TOLD = 4
# Drafts that are priced together.
_BATCH = 8
_DEFAULT = policy_config.PolicyConfig()
# Other placers have proposed maps and cuts: the policy begins with the best.
_BESIDE = policy_config.PolicyConfig(maps=0, cuts=0, schedules=6)
# Placements of other placers among the drafts.
_STARTS = 4


class MoveChoice(enum.StrEnum):
  """Who chooses moves."""

  TRAINED = 'trained'
  UNTRAINED = 'untrained'  # The same network, its weights as initialized.
  RANDOM = 'random'


class MovePolicyPlacer:
  """One device, maps by coordinates and list schedules, improved by moves.

  Drafts are priced, then moves of sets of ops from the best one: a layer, a
  time step, a branch, a unit, what runs in a stretch of time. A network that
  looks at the draft's simulated step chooses which of them are priced
  (`improving`). All is over after few prices, or when the time is.
  """

  def __init__(self, policy: str | None = None,
               choice: str = MoveChoice.TRAINED,
               config: policy_config.PolicyConfig = _DEFAULT,
               network: move_network.MoveNetwork | None = None) -> None:
    """Loads the weights of a move network, if a folder with one is named.

    Args:
      policy: A folder that `gdp_train` exported: the move network of this
        placer, or a policy of one forward pass, which says some drafts. By
        default the move network in the folder in the environment variable
        GDP_POLICY, else the one that ships.
      choice: Who chooses moves, of `MoveChoice`.
      config: How many are drafted, drawn and priced.
      network: The move network, whatever is named.

    Raises:
      PolicyMismatchError: the folder that is named holds no such policy.
    """
    self._network = network or move_folder.named(policy)
    self._policy = None if self._network else policy
    if self._policy is not None:
      learned.check(self._policy)
    self._choice, self._config = MoveChoice(choice), config

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`: the best by price, everything on one device among them.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
      PolicyMismatchError: the policy does not fit.
    """
    if not problem.graph.num_ops:
      return (placement_lib.of_nothing(problem.cluster),)
    deadline = problem.deadline()
    found = self.found(problem)
    best = memory_fit.settled(problem, found, deadline)
    others = (placement_lib.from_groups(problem.graph, row, problem.cluster)
              for row in found.ranked(_TOLD)[1:])
    return (best, *others)

  def found(self, problem: placer_lib.Problem,
            moves: moves_lib.Moves | None = None,
            starts: Sequence[np.ndarray] = (),
            exact: int = _TOLD) -> priced_placements.PricedPlacements:
    """All that it has priced.

    The best have exact prices; of the others it is known that they are none of
    these (`PricedPlacements.see`).

    Args:
      problem: What is to be placed; its time budget is kept, but some drafts
        are there in any case.
      moves: Of the problem, which searches may share; by default of all kinds.
      starts: int [G] each, more drafts.
      exact: How many of the best placements have exact prices.
    """
    deadline, budget_s = problem.deadline(), problem.time_budget_s
    rng = np.random.default_rng(problem.seed)
    rows = drafts.draw(
        problem, self._config, rng,
        deadlines.within(None if budget_s is None else _DRAFTS_SHARE * budget_s,
                         problem.clock))
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    drafted = [*starts, *rows][:self._config.prices]
    # The first few set a ceiling for all others, which then cost less.
    for begin in range(0, len(drafted), _BATCH):
      found.see(drafted[begin:begin + _BATCH], ceiling_s=found.ceiling_s(exact))
    if self._policy is not None:
      said = learned.LearnedPlacer(self._policy).candidates(problem)
      found.see(said[:, problem.graph.first_ops])
    describer = move_filter.MoveDescriber(problem)
    improving.Improver(found, describer, self._chooser(describer, problem.seed),
                       self._config, rng, moves or moves_lib.Moves(problem),
                       exact).run(deadline)
    return found

  def _chooser(self, describer: move_filter.MoveDescriber,
               seed: int) -> choosers.MoveChooser:
    rng = np.random.default_rng((seed, 1))
    network = self._network or shipped_moves.network()
    if self._choice == MoveChoice.RANDOM:
      return choosers.ByChance(describer, network, rng)
    if self._choice == MoveChoice.UNTRAINED:
      network = choosers.untrained(network, rng)
    return choosers.ByNetwork(describer, network, self._config.gain_weight)


def time_share(by_count: bool, repeats: bool) -> float:
  """What the policy may take of the time.

  Args:
    by_count: Whether what is priced, and not the clock, is to end the search.
    repeats: Whether a smaller graph is searched as well.
  """
  config = search_config.DEFAULT.time
  if by_count:
    return config.moves_by_count
  return config.moves_with_coarse if repeats else config.moves


def needed_s(problem: placer_lib.Problem) -> float:
  """Seconds of a search beside which the time of the policy does not count."""
  config = search_config.DEFAULT.time
  return config.moves_least_s + config.moves_op_s * problem.graph.num_ops


def before_search(
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
    network: Chooses moves; by default as of `MovePolicyPlacer`.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  if worth_s < needed_s(problem):
    return None
  return MovePolicyPlacer(config=_BESIDE, network=network).found(
      problem.until(deadlines.within(budget_s, clock)), moves,
      [*starts[:_STARTS]], search_config.DEFAULT.priorities.starts)
