"""The default placer: cheap placers and the policies propose, a search refines.

A network that learned from searches on synthetic graphs (`shipped_moves`)
chooses the moves that the search prices.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import progress as progress_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import asking
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search import coarse_problem
from gdp_grappler.placers.search import multilevel
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import search_worth
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.search.moves import move_filter
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import moves as moves_lib
from gdp_grappler.placers.search.moves import shipped_moves

# Names of starts that no placer of the registry made.
POLICY = 'policy'
MOVES = 'gdp_policy'
REFINED = 'refined'
_PARTITIONER = 'metis'
_STRUCTURED = 'structured'
# Placers whose placements are starts, the cheapest first. Each has the best
# start of some graph, on several hosts often `hierarchical`. One device and
# blocks of the topological order are starts in any case.
ANCHORS = (registry.EXPERT, 'hierarchical', _PARTITIONER, _STRUCTURED, 'm_etf',
           'heft')
# Placers that use repeated structure. If there is a coarse graph, its search
# finds what the other placers find, unless a fast placement overflows a memory.
_OF_STRUCTURE = registry.EXPERT, 'hierarchical', _STRUCTURED
# They come after the policy of moves, which takes less time.
_LIST_SCHEDULERS = 'm_etf', 'heft'
# Groups times devices above which METIS takes longer than `structured`.
_LARGE = 200_000
# Placers that may propose nothing: no expert, no repeated structure.
_MAY_BE_SILENT = {registry.EXPERT, _STRUCTURED}
# Seconds, if the problem has no time budget.
DEFAULT_BUDGET_S = 10.
# Share of the time in which the clock does not end a search that has to be
# repeatable. The result then depends on the clock on slow machines only.
_GRACE = .5
# Share of the affordable placements that is priced if a program waits.
_WAITED_FOR = .5
# Share of the time for the placers of `ANCHORS`.
_ANCHORS_SHARE = .3
# The same share for large graphs: list schedulers would use up any time.
_OF_LARGE = .2
# Seconds that a search must be worth for the policy of one forward pass, if it
# is named or loaded. Loading and the first run take as long.
_POLICY_S = 3.
# The same, if nobody named a policy: loading may take a small part of a search.
_UNASKED_S = 60.


@dataclasses.dataclass(frozen=True, eq=False)
class _Anchors:
  """Placements of the groups, by their placers.

  Attributes:
    names: [S] whose they are.
    devices: int [S, G].
    prices: [S].
  """

  names: tuple[str, ...]
  devices: np.ndarray
  prices: evaluator_lib.Prices

  def joined(self, others: _Anchors) -> _Anchors:
    return _Anchors(self.names + others.names,
                    np.concatenate([self.devices, others.devices]),
                    self.prices.followed_by(others.prices))

  def best(self) -> list[int]:
    """Rows of the best of each placer, the best first, none twice."""
    rows: dict[str, int] = {}
    for row in self._distinct():
      rows.setdefault(self.names[row], row)
    return list(rows.values())

  def starts(self) -> np.ndarray:
    """int [S, G], where a search may begin, the best first.

    What is slow first in, first out may be fast in order.
    """
    return self.devices[self._distinct()
                        [:search_config.DEFAULT.priorities.starts]]

  @property
  def overflows(self) -> bool:
    """Whether what is fastest overflows a memory."""
    fits = self.prices.valid
    return bool(self.prices.seconds.min() < self.prices.seconds[fits].min(
        initial=np.inf))

  def _distinct(self) -> list[int]:
    """All rows, the best first, none twice."""
    rows: dict[bytes, int] = {}
    for row in self.prices.ranking():
      rows.setdefault(self.devices[row].tobytes(), row)
    return list(rows.values())


class DefaultPlacer:
  """Cheap placers and the policy propose, the best by price is annealed.

  Nothing here makes a placement worse: the best anchor is an answer already.
  Ten thousand steps should earn the search's time, and no placement is faster
  than the lower bound. A policy that somebody names, or that is loaded already,
  takes part if the search is worth what it takes to load; the one that is
  installed only if that is little beside the search.
  """

  def __init__(self, policy: str | None = None,
               anchors: Sequence[str] = ANCHORS,
               clock: Callable[[], float] = time.monotonic, *,
               asks_policy: bool = True, asks_moves: bool = True,
               asks_network: bool = True) -> None:
    """Loads the weights of a move network, if a folder with one is named.

    Args:
      policy: As of `move_policy.MovePolicyPlacer`. A policy of one forward pass
        proposes; beside a move network none does.
      anchors: Placers of the registry. Those that cannot take part are left
        out with a notice.
      clock: Seconds since any moment.
      asks_policy: Whether the policy of one forward pass proposes.
      asks_moves: Whether the policy of moves proposes.
      asks_network: Whether a network chooses what refinement prices; if not,
        all that is drawn is priced.

    Raises:
      PolicyMismatchError: the folder that is named holds no such policy.
    """
    self._network = move_folder.named(policy)
    if policy is not None and self._network is None:
      learned.check(policy)
    self._policy, self._clock = policy, clock
    self._anchors = tuple(anchors)
    self._may_ask_policy = asks_policy and self._network is None
    self._asks_moves, self._asks_network = asks_moves, asks_network
    self._winner: str | None = None

  @property
  def winner(self) -> str | None:
    """Who found what `place` last returned; None before it ran."""
    return self._winner

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`: the refined one, the best of every anchor, and at last
    what a search in order found, where control edges may be added.

    The anchors come first; refinement has what is left of the time budget, as
    far as it may pay.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
      PolicyMismatchError: the policy does not fit.
    """
    deadline = deadlines.without_loading(_budget_s(problem),
                                         self._clock_of(problem))
    rng = np.random.default_rng(problem.seed)
    starts = annealing_placer.starting_points(problem, (), rng)
    # One device and the anchors first: they are the likely ones.
    blocks = {
        name: starts.pop(name) for name in (annealing_placer.BLOCKS,)
        if name in starts
    }
    found = _priced(problem, starts)
    worth = search_worth.Worth(problem, _budget_s(problem))
    moves = moves_lib.Moves(problem)
    if self._asks_policy(problem, worth.seconds(found.prices)):
      learned.load_ahead(self._policy)
    coarse = multilevel.coarsened(
        problem, _ahead_s(problem, worth.seconds(found.prices), deadline))
    found = self._proposed(problem, found, blocks, worth, deadline, coarse
                           is not None, moves)
    worth_s = worth.seconds(found.prices)
    if self._asks_policy(problem, worth_s) and deadline.remaining_s:
      found = _with(problem, found, self._of_policy(problem))
    begin = found.starts()
    further = []
    if coarse is not None and multilevel.is_worth(
        _ahead_s(problem, worth_s, deadline)):
      ahead = self._ahead(coarse, begin, rng, worth_s, deadline)
      worth_s *= 1 - search_config.DEFAULT.coarse.share * ahead.progress
      further = [ahead.rows]
    refined, *in_order = staged_search.searched(
        problem, begin, rng,
        _limit(problem, worth_s, deadline.remaining_s, self._clock_of(problem)),
        functools.partial(self._model, problem), further=further, moves=moves)
    groups = refined.devices[problem.graph.first_ops]
    found = _priced(problem, {REFINED: groups[None]}).joined(found)
    best = found.best()
    self._winner = found.names[best[0]]
    return (*(placement_lib.from_groups(problem.graph, found.devices[row],
                                        problem.cluster)
              for row in best), *in_order)

  def _proposed(self, problem: placer_lib.Problem, found: _Anchors,
                blocks: dict[str, np.ndarray], worth: search_worth.Worth,
                deadline: deadlines.Deadline, repeats: bool,
                moves: moves_lib.Moves) -> _Anchors:
    """What was found, and what anchors and the policy of moves propose."""
    first, rest = self._quick(problem, repeats)
    lists = [n for n in first if self._asks_moves and n in _LIST_SCHEDULERS]
    until = self._until(problem, deadline)
    found = self._with_anchors(problem, found, until,
                               [n for n in first if n not in lists])
    if self._asks_moves:
      found = self._with_moves(problem, found, worth.seconds(found.prices),
                               deadline.remaining_s, repeats, moves)
      found = self._with_anchors(problem, found, until, lists)
    found = _with(problem, found, blocks)
    if found.overflows:
      until = self._until(problem, deadline)
      found = self._with_anchors(problem, found, until, rest)
    return found

  def _ahead(self, coarse: coarse_problem.CoarseProblem, starts: np.ndarray,
             rng: np.random.Generator, worth_s: float,
             deadline: deadlines.Deadline) -> multilevel.Ahead:
    """What a search of a smaller problem finds, from starts int [S, G]."""
    progress_lib.doing('searching a smaller graph')
    share = coarse.config.coarse.share
    limit = _limit(coarse.problem, share * worth_s,
                   share * deadline.remaining_s, self._clock_of(coarse.problem))
    return multilevel.in_order(coarse, starts, rng, limit, self._model)

  def _quick(self, problem: placer_lib.Problem,
             repeats: bool) -> tuple[list[str], list[str]]:
    """Anchors that are asked at once, in turn; those where these overflow.

    Args:
      problem: What is to be placed.
      repeats: Whether there is a smaller one to be searched.
    """
    quick = [*self._anchors]
    if _is_large(problem) and {_PARTITIONER, _STRUCTURED} <= {*quick}:
      quick.remove(_PARTITIONER)
      quick.insert(quick.index(_STRUCTURED) + 1, _PARTITIONER)
    if not repeats or _STRUCTURED not in quick:
      return quick, []
    first = [name for name in quick if name in _OF_STRUCTURE]
    return first, [name for name in quick if name not in first]

  def _clock_of(self, problem: placer_lib.Problem) -> Callable[[], float]:
    return problem.clock if problem.by_count else self._clock

  def _asks_policy(self, problem: placer_lib.Problem, worth_s: float) -> bool:
    if not self._may_ask_policy or not (self._policy or learned.is_there()):
      return False
    # What else the process has done must not count where no clock does.
    wanted = learned.is_named(self._policy) or (not problem.by_count and
                                                learned.is_loaded(self._policy))
    return worth_s >= (_POLICY_S if wanted else _UNASKED_S)

  def _model(self,
             problem: placer_lib.Problem) -> move_filter.MoveFilter | None:
    if not self._asks_network:
      return None
    return move_filter.MoveFilter(problem, self._known_moves())

  def _known_moves(self) -> move_network.MoveNetwork:
    return self._network or shipped_moves.network()

  def _until(self, problem: placer_lib.Problem,
             deadline: deadlines.Deadline) -> deadlines.Deadline:
    """When anchors end."""
    share = _OF_LARGE if _is_large(problem) else _ANCHORS_SHARE
    return deadlines.within(share * deadline.remaining_s,
                            self._clock_of(problem))

  def _with_anchors(self, problem: placer_lib.Problem, found: _Anchors,
                    until: deadlines.Deadline,
                    names: Sequence[str]) -> _Anchors:
    """What was found, and what anchors propose that there is time for.

    Where nobody said how much, one is asked in any case.
    """
    first = problem.graph.first_ops
    for name in names:
      heard = set(found.names) - _MAY_BE_SILENT
      unasked = problem.time_budget_s is None and heard.isdisjoint(
          self._anchors)
      if unasked or not until.passed:
        proposed, _ = best_of.propose_each(problem, [name], until)
        found = _with(
            problem, found, {
                name: np.stack([p.devices[first] for p in own])
                for name, own in proposed.items()
            })
    return found

  def _with_moves(self, problem: placer_lib.Problem, found: _Anchors,
                  worth_s: float, left_s: float, repeats: bool,
                  moves: moves_lib.Moves) -> _Anchors:
    """What was found, and what the policy of moves makes of that."""
    share = asking.share(_is_by_count(problem), repeats)
    priced = asking.asked(problem, worth_s, share * min(left_s, worth_s),
                          self._clock_of(problem), moves, found.starts(),
                          self._known_moves())
    return found if priced is None else found.joined(
        _Anchors((MOVES,) * len(priced.prices), priced.devices, priced.prices))

  def _of_policy(self, problem: placer_lib.Problem) -> dict[str, np.ndarray]:
    first = problem.graph.first_ops
    placer = learned.LearnedPlacer(self._policy)
    return {POLICY: placer.candidates(problem)[:, first].astype(np.int32)}


def _priced(problem: placer_lib.Problem, rows: dict[str,
                                                    np.ndarray]) -> _Anchors:
  """Everybody's placements, int [K, G] each."""
  devices = np.concatenate(list(rows.values()))
  names = (name for name, own in rows.items() for _ in own)
  return _Anchors(
      tuple(names), devices,
      problem.evaluator.price_groups(problem.graph, devices, ceiling_s=None))


def _with(problem: placer_lib.Problem, found: _Anchors,
          rows: dict[str, np.ndarray]) -> _Anchors:
  """What was found, and somebody's placements, int [K, G] each, if any."""
  return found.joined(_priced(problem, rows)) if rows else found


def _ahead_s(problem: placer_lib.Problem, worth_s: float,
             deadline: deadlines.Deadline) -> float:
  """Seconds that the search of a smaller problem may take."""
  left_s = deadline.remaining_s
  if left_s and _is_by_count(problem):
    left_s = _budget_s(problem)
  return search_config.DEFAULT.coarse.share * min(worth_s, left_s)


def _is_large(problem: placer_lib.Problem) -> bool:
  return problem.graph.num_groups * problem.cluster.num_devices > _LARGE


def _budget_s(problem: placer_lib.Problem) -> float:
  if problem.time_budget_s is None:
    return DEFAULT_BUDGET_S
  return problem.time_budget_s


def _is_by_count(problem: placer_lib.Problem) -> bool:
  """Whether what is priced, and not the clock, is to end a search."""
  return (problem.by_count or problem.repeatable or
          problem.time_budget_s is None)


def _limit(problem: placer_lib.Problem, worth_s: float, left_s: float,
           clock: Callable[[], float]) -> search_budget.SearchBudget:
  """Of a search, which begins now.

  Whoever says how long it may take gets all that it is worth of that. Else, or
  where it has to be repeatable, it prices as many as `worth_s` stand for.

  Args:
    problem: G groups.
    worth_s: Seconds that the search is worth.
    left_s: Seconds that are left.
    clock: Seconds since any moment.
  """
  count = annealing_placer.evaluations_for(problem)
  seconds = min(left_s, worth_s)
  if not _is_by_count(problem) or not problem.evaluator.simulated:
    return search_budget.SearchBudget(count, seconds, clock=clock)
  share = _WAITED_FOR if problem.repeatable else 1.
  affordable = annealing_placer.affordable(problem, share * worth_s)
  batch = search_config.DEFAULT.annealing.batch
  count = min(affordable, count) // batch * batch
  return search_budget.SearchBudget(count, seconds, _GRACE, clock)
