"""Anneals the best of what other placers propose (see `annealing`)."""

from __future__ import annotations

import math
import sys
import time
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import progress as progress_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.placers import annealing
from gdp_grappler.placers import best_of
from gdp_grappler.placers import enforced
from gdp_grappler.placers import limits
from gdp_grappler.placers import move_model
from gdp_grappler.placers import moves as moves_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import prioritized
from gdp_grappler.placers import races
from gdp_grappler.placers import single_device

DEFAULT_STARTS = ('single_device', 'human_expert', 'metis', 'm_topo', 'm_etf',
                  'heft', 'structured')
# Of `starting_points`, stretches of the topological order.
BLOCKS = 'blocks'
_BLOCK_STARTS = 16
# What placers that it starts from may take of the time.
_STARTS_SHARE = .3
# Ops times devices above which there is one: others have a plan for that many.
_LARGE = 2_000_000
# Placements that a default search prices: so many ops in all, which takes two
# cores about 20 s, or so many if a stopwatch prices them.
_PRICED_OPS = 80_000_000
_FEWEST, _MOST, _MEASURED = 500, 20_000, 300
# To look at a start in order takes as long as to price a few; that it may take
# as long as so many leaves time for the search.
_RANKED = 8
# Placements for which control edges are looked for, to know which is the best
# with them, as edges keep more of one order than of another; more where a clock
# says how long it may take, none more than known if the time is over before.
_COMPARED, _CLOCKED = 3, 12
# What of the time that is left it may take to look at starts in order, and
# halfway to look for edges. On large graphs all of either would take it all.
_STARTING, _COMPARING = .25, .3


class LocalSearchPlacer:
  """Anneals the best of some starts, and returns the best it has priced.

  Starts are placements of other placers, every single device, and blocks of the
  topological order on one accelerator each. A placement that overflows a memory
  is slower in the eyes of the search, by how much it overflows; a valid one is
  always preferred in the end. Steps are priced first in, first out, whatever
  priorities a start has.

  Where control edges may be added (`Problem.simulator`) and pay, a part of the
  search goes on under priorities (`prioritized`), and what it finds is proposed
  as well; the rest of the search belongs to the order in which the better one
  was found.
  """

  def __init__(self, evaluations: int | None = None,
               starts: Sequence[str] = DEFAULT_STARTS,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Sets the limits.

    Args:
      evaluations: Placements to price. By default only
        `Problem.time_budget_s` ends the search or, without one, a number that
        is less for large graphs, such that two cores simulate them in about 20
        s, and small if a stopwatch prices them. A search that the clock stops
        depends on the speed of the machine; the temperature falls the sooner.
        Starts that are there by then are priced in any case.
      starts: Placers to start from. Those that cannot take part are left out
        with a notice.
      clock: Seconds since any moment.
    """
    self._evaluations = evaluations
    self._starts = tuple(starts)
    self._clock = clock

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`; the best first in, first out."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`: the best first in, first out, and the best in order."""
    deadline = deadlines.NEVER
    if problem.time_budget_s is not None:
      deadline = deadlines.within(_STARTS_SHARE * problem.time_budget_s,
                                  self._clock)
    limit = limits.Limit((evaluations_for(problem)
                          if self._evaluations is None else self._evaluations),
                         problem.time_budget_s, clock=self._clock)
    rng = np.random.default_rng(problem.seed)
    starts = starting_points(problem, self._starts, rng, deadline)
    return searched(problem, np.concatenate(list(starts.values())), rng, limit)


# Makes a model that chooses the steps of one search.
Models = Callable[[], move_model.MoveModel | None]


def _no_model() -> None:
  """Every step that is drawn is priced."""


def annealed(problem: placer_lib.Problem, starts: np.ndarray,
             rng: np.random.Generator, limit: limits.Limit,
             models: Models = _no_model,
             kinds: Sequence[str] = moves_lib.Moves.kinds,
             moves: moves_lib.Moves | None = None) -> np.ndarray:
  """int [G], the best that a search from the best of some starts has priced.

  Args:
    problem: G groups.
    starts: int [S, G], all of which are priced.
    rng: Of the search.
    limit: Of the search, the starts included.
    models: Chooses steps.
    kinds: Of moves that are made; at least one.
    moves: Of those kinds, if they have been made.
  """
  progress_lib.doing('searching')
  search = annealing.with_packed(
      problem, starts,
      annealing.Annealing(problem, starts, rng, models(),
                          moves or moves_lib.Moves(problem, kinds)))
  run([search], limit, races.Phase())
  return search.best


def searched(
    problem: placer_lib.Problem, starts: np.ndarray, rng: np.random.Generator,
    limit: limits.Limit, models: Models = _no_model,
    kinds: Sequence[str] = moves_lib.Moves.kinds,
    further: Sequence[np.ndarray] = (), moves: moves_lib.Moves | None = None
) -> tuple[placement_lib.Placement, ...]:
  """The best of a search first in, first out; then the best in an order.

  The latter with its priorities, where orders pay (`prioritized.pays`). What is
  the best of all hangs on the control edges that enforce them (`choosing`).

  Args:
    problem: G groups.
    starts: int [S, G], all of which are priced.
    rng: Of the search.
    limit: Of the search, the starts included.
    models: Chooses steps, for each order anew.
    kinds: Of moves that are made; at least one.
    further: int [K, G] each, more starts of the search in order.
    moves: Of those kinds, if they have been made.
  """
  moves = moves_lib.Moves(problem, kinds) if moves is None else moves
  if not prioritized.pays(problem):
    best = annealed(problem, starts, rng, limit, models, moves=moves)
    return (placement_lib.from_groups(problem.graph, best, problem.cluster),)
  progress_lib.doing('searching, and for an order')
  begin_s = limit.spent_s
  plain = annealing.with_packed(
      problem, starts, annealing.Annealing(problem, starts, rng, models(),
                                           moves))
  each_s = _RANKED * (limit.spent_s - begin_s) / plain.evaluations
  run([plain], limit, _FIRST)
  # The best start is looked at in both orders, even if time is over.
  count = limit.affordable(each_s, prioritized.STARTS, _STARTING)
  both = np.concatenate(
      [plain.best[None], *further, starts[plain.ranking[:count]]])
  ordered, *slower = races.raced(
      lambda: prioritized.PrioritizedSearch(problem, both, rng, models(), moves
                                           ), _SECOND,
      races.racers(plain.evaluations, limit.progress(plain.evaluations)),
      lambda racers, part: run([*racers, plain], limit, part))
  edges = enforced.Enforced(problem)
  searches: Searches = [ordered, plain, *slower]
  known: Sequence[placement_lib.Placement] = []
  if limit.progress(_evaluations(searches)) < 1:
    begin_s = limit.spent_s
    known = edges.compared(_likely(problem, plain, [ordered, *slower]),
                           _while_affordable(limit))
    limit.keep((limit.spent_s - begin_s) / len(known))
    leader = min(known, key=edges.key)
    if leader.priorities is None or plain.best_key <= edges.key(leader):
      searches = [plain, ordered, *slower]
    run(searches, limit, _REST)
  # If time is over, what is known is enough.
  asked = [*filter(edges.orders, known), ordered.best]
  fastest = _fastest(problem, plain.best, asked)
  if known and len(asked) == 1 and limit.passed:
    return fastest, ordered.best
  return fastest, edges.best(asked, lambda: limit.passed)


def _while_affordable(limit: limits.Limit) -> Callable[[int], bool]:
  """Whether, after so many looks for edges from now on, there is one more."""
  begin_s = limit.spent_s
  most = _CLOCKED if limit.clocked else _COMPARED

  def goes_on(count: int) -> bool:
    each_s = (limit.spent_s - begin_s) / count
    return count < limit.affordable(each_s, most, _COMPARING)

  return goes_on


def _likely(
    problem: placer_lib.Problem, plain: annealing.Annealing,
    searches: Sequence[prioritized.PrioritizedSearch]) -> list[enforced.Ranked]:
  """What is likely to be fast with edges, the fastest in order first."""
  simulator, graph = problem.simulator, problem.graph
  assert simulator is not None  # Orders pay.
  found = placement_lib.from_groups(graph, plain.best, problem.cluster)
  promised_s = control_edges.promised_s(graph, found, simulator)
  fifo_s = float(simulator.price(graph, found.devices[None]).seconds[0])
  gain = promised_s / fifo_s if 0 < fifo_s < math.inf else 1.
  key = plain.best_key
  return enforced.distinct([
      *((search.best_key, search.best) for search in searches),
      *searches[0].starts, ((*key[:3], key[3] * min(gain, 1.)), found)
  ])


def _fastest(
    problem: placer_lib.Problem, row: np.ndarray,
    placements: Sequence[placement_lib.Placement]) -> placement_lib.Placement:
  """The best of int [G] and others first in, first out, without priorities."""
  devices = np.stack([
      row[problem.graph.groups],
      *(placement.devices for placement in placements)
  ])
  best = problem.evaluator.price(problem.graph, devices).best()
  return placement_lib.Placement(devices[best], problem.cluster)


# Half of a search in either order, and the other half of the better one.
_FIRST = races.Phase(0., .25, 0., .5)
_SECOND = races.Phase(.25, .5, 0., .5)
_REST = races.Phase(.5, 1., .5, 1.)

Searches = Sequence[annealing.Annealing | prioritized.PrioritizedSearch]


def run(searches: Searches, limit: limits.Limit, phase: races.Phase,
        reports: bool = True) -> None:
  """Goes on with the first of some searches.

  Args:
    searches: What they have priced counts together.
    limit: Of all.
    phase: Of the first one.
    reports: Whether to tell of the progress of all.
  """
  search = searches[0]
  while search.can_move:
    evaluations = _evaluations(searches)
    progress = limit.progress(evaluations)
    if reports:
      progress_lib.reached(progress)
    if progress >= phase.last:
      break
    share = max(progress - phase.first, 0.) / (phase.last - phase.first)
    search.step(phase.begin + (phase.end - phase.begin) * share,
                min(annealing.BATCH, limit.evaluations - evaluations))


def _evaluations(searches: Searches) -> int:
  """Placements that they have priced together."""
  return sum(search.evaluations for search in searches)


def evaluations_for(problem: placer_lib.Problem) -> int:
  """How many placements a search prices by default.

  As many as it likes where there is a time that ends it.
  """
  if problem.time_budget_s is not None and math.isfinite(problem.time_budget_s):
    return sys.maxsize
  if not problem.evaluator.simulated:
    return _MEASURED
  affordable = _PRICED_OPS // max(problem.graph.num_ops, 1)
  return min(max(affordable, _FEWEST), _MOST)


def starting_points(
    problem: placer_lib.Problem, names: Sequence[str], rng: np.random.Generator,
    deadline: deadlines.Deadline = deadlines.NEVER) -> dict[str, np.ndarray]:
  """int [S, G] by whose they are, where a search may begin.

  Args:
    problem: G groups.
    names: Placers to ask.
    rng: Of the blocks.
    deadline: Only the first of them is asked afterwards.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  first = problem.graph.first_ops
  found, _ = best_of.propose_each(problem, names, deadline)
  result = {'one device': single_device.of_each_kind(problem)}
  result[BLOCKS] = _blocks(problem, rng)
  result.update((name, np.stack([p.devices[first] for p in own]))
                for name, own in found.items())
  return {
      name: rows.astype(np.int32) for name, rows in result.items() if len(rows)
  }


def _blocks(problem: placer_lib.Problem,
            rng: np.random.Generator) -> np.ndarray:
  """int [B, G], one stretch of the topological order on each accelerator.

  The stretches of the first are of equal work, the others end anywhere.
  """
  graph, cluster = problem.graph, problem.cluster
  devices = np.array(cluster.accelerators)
  first = np.unique(graph.groups[graph.topological_order], return_index=True)[1]
  order = np.argsort(first, kind='stable')
  work = np.cumsum(
      np.bincount(graph.groups, problem.op_seconds[:, devices].min(axis=1),
                  graph.num_groups)[order])
  rows = []
  large = graph.num_ops * cluster.num_devices > _LARGE
  for index in range((
      1 if large else _BLOCK_STARTS) if len(devices) > 1 else 0):
    ends = (np.sort(rng.random(len(devices)
                               - 1)) if index else np.arange(1, len(devices))
            / len(devices))
    row = np.empty(graph.num_groups, int)
    row[order] = devices[np.searchsorted(ends * work[-1], work)]
    rows.append(row)
  return constraints.made_legal(
      np.array(rows, int).reshape(-1, graph.num_groups), problem.allowed,
      cluster.host)
