"""The default placer: a search from placements of cheap placers and networks.

There are two networks. The move network (`shipped_moves`) chooses the moves
that the search prices. The policy (GDP's network) proposes placements in long
searches. The placer `gdp_policy` (`move_policy`) needs only the move network.
"""

from __future__ import annotations

import math
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import progress as progress_lib
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import bounds
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import quick_schedule
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_policy
from gdp_grappler.placers.policy import named_policy
from gdp_grappler.placers.search import coarse_problem
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import search_time
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import shipped_moves

# Sources of placements beside the anchors. `REFINED` is the search.
ONE_DEVICE = annealing_placer.ONE_DEVICE
POLICY = 'policy'
MOVES = 'gdp_policy'
REFINED = 'refined'
# The anchors: placers whose placements are starts of the search. Each anchor
# has the best start of some graph. Other starts are single devices, a
# `quick_schedule`, and blocks of the topological order if time is left.
ANCHORS = (registry.EXPERT, 'hierarchical', 'structured', 'metis', 'm_sct',
           'm_etf', 'heft')
# Anchors that propose few placements. They run before `gdp_policy`.
_BEFORE_MOVES = registry.EXPERT, 'hierarchical'
# Anchors that also run before `gdp_policy` if control edges pay, `gdp_policy`
# has enough time, and there is no coarse graph. With control edges, placements
# of these anchors are often faster than those of `gdp_policy`. If there is a
# coarse graph, its search needs this time.
_BEFORE_MOVES_IN_ORDER = 'structured', 'metis'
# Anchors that do not run after `gdp_policy`, which makes similar placements,
# unless a placement that exceeds a memory is faster than all that fit.
_LIKE_MOVES = 'm_sct', 'm_etf', 'heft'
# The anchor among these that also runs if no single device has room for the
# graph. In tight memory its placements are often better starts. It does not run
# if the number of prices ends the search, because this anchor obeys the clock.
_IN_TIGHT_MEMORY = 'm_etf'
# Further anchors that do not run after `gdp_policy` if there is a coarse graph.
# The search of the coarse graph finds placements as good as theirs.
_LIKE_COARSE = ('metis',)
# Placers that may have nothing to propose, because there is no expert, no
# repeated structure or only one host.
_MAY_PROPOSE_NOTHING = {registry.EXPERT, 'hierarchical', 'structured'}


class DefaultPlacer:
  """Simulated annealing from placements of cheap placers and of networks.

  The price of the result is never higher than that of the best start. The time
  of the search is limited by the time that it can save
  (`search_time.worth_s`). The policy takes part if the search may take more
  seconds than a limit. This limit is low if the user named the policy or if the
  policy is loaded already.
  """

  def __init__(self, policy: str | None = None,
               anchors: Sequence[str] = ANCHORS, *, asks_policy: bool = True,
               asks_moves: bool = True, asks_network: bool = True) -> None:
    """Loads the weights of a move network, if a folder with one is named.

    Args:
      policy: Folder of a network, see `move_policy.MovePolicyPlacer`. If it is
        the folder of a move network, the policy takes no part.
      anchors: Names of placers of the registry. Placers that cannot take part
        are left out with a notice.
      asks_policy: Whether the policy proposes.
      asks_moves: Whether `gdp_policy` proposes.
      asks_network: Whether the move network chooses the moves that the search
        prices. If not, the search prices all moves that it draws.

    Raises:
      PolicyMismatchError: the folder has no network that this version can use.
    """
    self._network = named_policy.read(policy)
    self._policy, self._anchors = policy, tuple(anchors)
    self._may_ask_policy = asks_policy and self._network is None
    self._asks_moves, self._asks_network = asks_moves, asks_network
    self._winner: str | None = None

  @property
  def winner(self) -> str | None:
    """Source of the placement that `place` returned last; None at first."""
    return self._winner

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`: the best placement of each source, the best first.

    If control edges pay (`Problem.orders_pay`) and there was time, the last one
    is the best placement in the order of priorities. The anchors run before the
    search.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
      PolicyMismatchError: the policy does not fit.
    """
    if not problem.graph.num_ops:
      return (placement_lib.of_nothing(problem.cluster),)
    deadline = deadlines.without_loading(search_time.budget_s(problem),
                                         problem.clock)
    rng = np.random.default_rng(problem.seed)
    priced = priced_placements.PricedPlacements(problem.graph,
                                                problem.evaluator)
    each_s = _add_timed(
        priced,
        one_device.of_each_kind(problem.cluster, problem.allowed,
                                problem.op_seconds), ONE_DEVICE, deadline.clock)
    alone_s = float(priced.prices.valid_seconds.min())
    is_scheduled = not self._anchors or quick_schedule.add(
        problem, priced, quick_schedule.SMALL)
    # Blocks are priced after the anchors, which are more likely to be fast.
    blocks = annealing_placer.blocks(problem, rng)
    bound_s = bounds.lower_bound(problem.graph, problem.cluster,
                                 problem.op_seconds).seconds
    moves = moves_lib.Moves(problem)
    worth_s = search_time.worth_s(problem, priced.prices, bound_s)
    if self._asks_policy(problem, worth_s):
      learned.load_ahead(self._policy)
    coarse = multilevel.coarsened(
        problem, search_time.coarse_s(problem, worth_s, deadline))
    self._ask(problem, priced, bound_s, deadline, coarse is not None, moves,
              math.isinf(alone_s) and not problem.ends_by_count)
    if not is_scheduled and quick_schedule.is_wanted(priced, alone_s, bound_s):
      quick_schedule.add(problem, priced, 1.)
    if _has_time(deadline, each_s * len(blocks)) or not priced.fits:
      each_s = _add_timed(priced, blocks, annealing_placer.BLOCKS,
                          deadline.clock)
    worth_s = search_time.worth_s(problem, priced.prices, bound_s)
    if self._asks_policy(problem, worth_s) and deadline.remaining_s:
      priced.add(self._of_policy(problem), POLICY, None)
    in_order = self._search(problem, priced, coarse, moves, rng, worth_s,
                            deadline, each_s)
    best = priced.best_of_each()
    self._winner = next(iter(best))
    return (*(placement_lib.from_groups(problem.graph, row, problem.cluster)
              for row in best.values()), *in_order)

  def _search(self, problem: placer_lib.Problem,
              priced: priced_placements.PricedPlacements,
              coarse: coarse_problem.CoarseProblem | None,
              moves: moves_lib.Moves, rng: np.random.Generator, worth_s: float,
              deadline: deadlines.Deadline,
              each_s: float) -> Sequence[placement_lib.Placement]:
    """Adds the best placement that the search finds by FIFO price.

    Args:
      problem: The problem to place.
      priced: Starts of the search; gets its result.
      coarse: The smaller problem; None if there is none.
      moves: Draws moves of the problem.
      rng: Random numbers of the search.
      worth_s: Seconds that all searches together are worth.
      deadline: End of all searches.
      each_s: Seconds of a price.

    Returns:
      The best placement in the order of priorities, if orders pay and there
      was time; else none.
    """
    config = search_config.DEFAULT.priorities
    begin = priced.ranked(search_config.DEFAULT.start.best)
    # The clock stops neither the prices of the starts nor the first batch.
    least = len(begin) + search_config.DEFAULT.annealing.batch
    if priced.fits and not _has_time(deadline, each_s * least):
      return ()
    varied = (priced.varied(config.starts, config.different)
              if problem.orders_pay else None)
    short = search_config.DEFAULT.short
    further = []
    if coarse is not None and multilevel.is_worth(
        search_time.coarse_s(problem, worth_s, deadline)):
      result = self._search_coarse(coarse, begin, rng, worth_s, deadline)
      worth_s *= 1 - search_config.DEFAULT.coarse.share * result.progress
      further = [result.rows]
    refined, *in_order = staged_search.search(
        problem, begin, rng,
        search_time.limit(problem, worth_s, deadline.remaining_s),
        self._models(), further=further, moves=moves, varied=varied,
        several=priced.varied_sources(short.starts, short.different))
    priced.add([refined.devices[problem.graph.first_ops]], REFINED, None)
    return in_order

  def _ask(self, problem: placer_lib.Problem,
           priced: priced_placements.PricedPlacements, bound_s: float,
           deadline: deadlines.Deadline, repeats: bool, moves: moves_lib.Moves,
           tight: bool) -> None:
    """Adds the proposals of the anchors and of `gdp_policy`.

    A few anchors run first, then `gdp_policy`, then the other anchors. If
    little time is left after `gdp_policy`, none of the others runs. With more
    time, those that make similar placements are left out. In tight memory m-ETF
    is none of these. All of the others run if no placement fits, if memory is
    not tight and a placement that exceeds a memory is faster than all that fit,
    or if `gdp_policy` took no part.

    Args:
      problem: The problem to place.
      priced: Placements; gets the proposals.
      bound_s: Lower bound of the step.
      deadline: End of all searches.
      repeats: Whether a coarse graph is searched, too.
      moves: Draws moves of the problem.
      tight: Whether no single device has room, and the clock ends the search.
    """
    config, clock = search_config.DEFAULT.time, deadline.clock
    has_time = move_policy.has_time(problem, deadline.remaining_s)
    # A time that is too short for `gdp_policy` is too short for a search, too.
    # So the anchors after `gdp_policy` may use all of this time.
    share = config.anchors if has_time else 1.
    early: tuple[str, ...] = _BEFORE_MOVES
    if problem.orders_pay and has_time and not repeats:
      early += _BEFORE_MOVES_IN_ORDER
    begin = [name for name in self._anchors if name in early]
    others = [name for name in self._anchors if name not in begin]
    has_answer = self._ask_anchors(
        problem, priced, begin,
        deadlines.within(config.anchors * deadline.remaining_s, clock))
    took_part = self._asks_moves and self._ask_moves(
        problem, priced, search_time.worth_s(problem, priced.prices, bound_s),
        deadline.remaining_s, repeats, moves)
    left_s = share * deadline.remaining_s
    if took_part and (priced.fastest_fits or (tight and priced.fits)):
      if not move_policy.leaves_time(problem, left_s):
        return
      similar = {*_LIKE_MOVES, *(_LIKE_COARSE if repeats else ())}
      if tight:
        similar.remove(_IN_TIGHT_MEMORY)
      others = [name for name in others if name not in similar]
    self._ask_anchors(problem, priced, others, deadlines.within(left_s, clock),
                      has_answer)

  def _search_coarse(self, coarse: coarse_problem.CoarseProblem,
                     starts: np.ndarray, rng: np.random.Generator,
                     worth_s: float,
                     deadline: deadlines.Deadline) -> multilevel.CoarseResult:
    """Placements that the search of a smaller problem finds.

    Args:
      coarse: The smaller problem.
      starts: int [S, G], placements with which the search begins.
      rng: Random numbers of the search.
      worth_s: Seconds that all searches together are worth.
      deadline: End of all searches.
    """
    progress_lib.doing('searching a smaller graph')
    share = search_config.DEFAULT.coarse.share
    limit = search_time.limit(coarse.problem, share * worth_s,
                              share * deadline.remaining_s)
    return multilevel.search(coarse, starts, rng, limit, self._models())

  def _asks_policy(self, problem: placer_lib.Problem, worth_s: float) -> bool:
    if not self._may_ask_policy or not (self._policy or learned.is_available()):
      return False
    # A repeatable result must not depend on the policies that are loaded.
    wanted = learned.is_named(
        self._policy) or (not (problem.by_count or problem.repeatable) and
                          learned.is_loaded(self._policy))
    config = search_config.DEFAULT.time
    return worth_s >= (config.named_policy_s if wanted else config.policy_s)

  def _models(self) -> staged_search.Models:
    if not self._asks_network:
      return staged_search.no_model
    return staged_search.models_of(self._known_moves())

  def _known_moves(self) -> move_network.MoveNetwork:
    return self._network or shipped_moves.network()

  def _ask_anchors(self, problem: placer_lib.Problem,
                   priced: priced_placements.PricedPlacements,
                   names: Sequence[str], deadline: deadlines.Deadline,
                   has_answer: bool = False) -> bool:
    """Adds the proposals of anchors until a deadline.

    At least one anchor is called, even after the deadline. Otherwise a large
    graph on a busy machine would stay on a single device.

    Args:
      problem: The problem to place.
      priced: Placements; gets the proposals.
      names: The anchors.
      deadline: End of the anchors' time. If the problem has a time budget, each
        anchor but the last gets only a part of the time that is left.
      has_answer: Whether an earlier anchor has proposed.

    Returns:
      Whether an anchor has proposed, now or earlier.
    """

    def on_proposals(name: str,
                     proposed: Sequence[placement_lib.Placement]) -> bool:
      nonlocal has_answer
      first = problem.graph.first_ops
      priced.add([p.devices[first] for p in proposed], name, None)
      has_answer |= (name in priced.sources or name not in _MAY_PROPOSE_NOTHING)
      return has_answer

    if not (has_answer and deadline.passed):
      # A part of the time may be so short that the clock ends an anchor. But
      # without a time budget, no clock may change the result.
      best_of.propose_each(problem, best_of.quickest_first(names), deadline,
                           on_proposals, in_parts=problem.time_budget_s
                           is not None)
    return has_answer

  def _ask_moves(self, problem: placer_lib.Problem,
                 priced: priced_placements.PricedPlacements, worth_s: float,
                 left_s: float, repeats: bool, moves: moves_lib.Moves) -> bool:
    """Adds placements of `gdp_policy`; returns whether it took part."""
    improved = move_policy.before_search(
        problem, worth_s,
        move_policy.own_s(problem, min(left_s, worth_s), repeats), moves,
        priced.ranked(search_config.DEFAULT.start.best), self._known_moves())
    if improved is None:
      return False
    priced.add_priced(improved, MOVES)
    return True

  def _of_policy(self, problem: placer_lib.Problem) -> np.ndarray:
    """int32 [K, G], proposals of the policy."""
    rows = learned.LearnedPlacer(self._policy).candidates(problem)
    return rows[:, problem.graph.first_ops].astype(np.int32)


def _add_timed(priced: priced_placements.PricedPlacements, rows: np.ndarray,
               source: str, clock: Callable[[], float]) -> float:
  """Adds placements int [K, G]; returns seconds per price, 0 if none is new."""
  fresh, begin_s = sum(not priced.contains(row) for row in rows), clock()
  priced.add(rows, source, None)
  return (clock() - begin_s) / max(fresh, 1)


def _has_time(deadline: deadlines.Deadline, seconds: float) -> bool:
  """Whether there is time for work that nothing can stop."""
  return 0 < deadline.remaining_s >= seconds
