"""Anneals the best of what other placers propose (see `annealing`)."""

from __future__ import annotations

import math
import sys
import time
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import staged_search
from gdp_grappler.placers.simple import single_device

DEFAULT_STARTS = ('single_device', 'human_expert', 'metis', 'm_topo', 'm_etf',
                  'heft', 'structured')
# Of `starting_points`, stretches of the topological order.
BLOCKS = 'blocks'
_BLOCK_STARTS = 16
# What placers that it starts from may take of the time.
_STARTS_SHARE = .3
# Ops that are priced per second where no clock counts. Two idle cores price
# more.
_OPS_PER_S = 4_000_000
# Drawing the moves among which one is chosen takes as long as pricing so many
# ops.
_DRAWN_OPS = 1_500
# Ops times devices above which there is one: others have a plan for that many.
_LARGE = 2_000_000


class AnnealingPlacer:
  """Anneals the best of some starts, and returns the best it has priced.

  Starts are placements of other placers, every single device, and blocks of the
  topological order on one accelerator each. A placement that overflows a memory
  is slower in the eyes of the search, by how much it overflows; a valid one is
  always preferred in the end. Steps are priced first in, first out, whatever
  priorities a start has.

  Where control edges may be added (`Problem.simulator`) and pay, a part of the
  search goes on under priorities (`priority_annealing`), and what it finds is
  proposed as well; the rest of the search belongs to the order in which the
  better one was found.
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
    seconds = None if problem.by_count else problem.time_budget_s
    if seconds is not None:
      deadline = deadlines.within(_STARTS_SHARE * seconds, self._clock)
    limit = search_budget.SearchBudget(
        (evaluations_for(problem) if self._evaluations is None else
         self._evaluations), seconds, clock=self._clock)
    rng = np.random.default_rng(problem.seed)
    starts = starting_points(problem, self._starts, rng, deadline)
    return staged_search.searched(problem,
                                  np.concatenate(list(starts.values())), rng,
                                  limit)


def evaluations_for(
    problem: placer_lib.Problem,
    config: search_config.SearchConfig = search_config.DEFAULT) -> int:
  """How many placements a search prices by default.

  There is no limit where a time budget ends the search.

  Args:
    problem: What is to be placed.
    config: The numbers of the search.
  """
  if problem.time_budget_s is not None and math.isfinite(problem.time_budget_s):
    if problem.by_count:
      return max(affordable(problem, problem.time_budget_s), 1)
    return sys.maxsize
  if not problem.evaluator.simulated:
    return config.measured
  priced = config.priced_ops // max(problem.graph.num_ops, 1)
  return min(max(priced, config.fewest), config.most)


def affordable(problem: placer_lib.Problem, seconds: float) -> int:
  """How many placements so many seconds stand for, on any machine."""
  return int(seconds * _OPS_PER_S / (problem.graph.num_ops + _DRAWN_OPS))


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
