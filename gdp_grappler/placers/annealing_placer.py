"""Simulated annealing that starts with placements of other placers."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.search import search_budget
from gdp_grappler.placers.search import search_config
from gdp_grappler.placers.search import search_time
from gdp_grappler.placers.search import staged_search

DEFAULT_STARTS = ('single_device', 'human_expert', 'metis', 'm_topo', 'm_etf',
                  'heft', 'structured')
# Name of the starts with all ops on one device.
ONE_DEVICE = 'one device'
# Name of the starts that are blocks of the topological order.
BLOCKS = 'blocks'


class AnnealingPlacer:
  """Simulated annealing from the best of several starts (`search.annealing`).

  The starts are placements of other placers, placements of all groups on one
  device, and placements with one block of the topological order on each
  accelerator. During the search a placement that overflows a memory has a
  penalty. If the search has priced a placement that fits, the result fits. The
  search ignores priorities of its starts.

  If control edges may be added and pay (`Problem.orders_pay`), there are two
  annealings. In one, ops run first in, first out. In the other, ops run in the
  order of priorities (`priority_annealing`). The annealing with the faster
  placement gets the rest of the time. The placer proposes the best placement of
  each annealing.
  """

  def __init__(self, evaluations: int | None = None,
               starts: Sequence[str] = DEFAULT_STARTS) -> None:
    """Sets the limits.

    Args:
      evaluations: Placements to price. By default, `Problem.time_budget_s`
        ends the search. Without a time budget the number depends on the graph
        (`search_time.evaluations_for`). The result of a search that the clock
        ends depends on the speed of the machine. The search always prices all
        starts.
      starts: Placers of the starts. The search leaves out a placer that cannot
        run, and prints a notice.
    """
    self._evaluations = evaluations
    self._starts = tuple(starts)

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`; the best placement by FIFO price."""
    return self.proposals(problem)[0]

  def proposals(
      self, problem: placer_lib.Problem) -> tuple[placement_lib.Placement, ...]:
    """See `Proposer`: the best by FIFO price, then the best by priorities."""
    if not problem.graph.num_ops:
      return (placement_lib.of_nothing(problem.cluster),)
    deadline = deadlines.NEVER
    seconds = None if problem.by_count else problem.time_budget_s
    if seconds is not None:
      deadline = deadlines.within(search_config.DEFAULT.start.share * seconds,
                                  problem.clock)
    limit = search_budget.SearchBudget(
        (search_time.evaluations_for(problem) if self._evaluations is None else
         self._evaluations), seconds, clock=problem.clock)
    rng = np.random.default_rng(problem.seed)
    starts = starting_points(problem, self._starts, rng, deadline)
    return staged_search.search(problem, np.concatenate(list(starts.values())),
                                rng, limit)


def starting_points(
    problem: placer_lib.Problem, names: Sequence[str], rng: np.random.Generator,
    deadline: deadlines.Deadline = deadlines.NEVER) -> dict[str, np.ndarray]:
  """Starts of a search, int [S, G] by the name of their source.

  Args:
    problem: G groups.
    names: Placers of the starts.
    rng: Random numbers of the blocks.
    deadline: After this time only the first placer is called.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  first = problem.graph.first_ops
  proposed, _ = best_of.propose_each(problem, best_of.quickest_first(names),
                                     deadline)
  result = {
      ONE_DEVICE:
          one_device.of_each_kind(problem.cluster, problem.allowed,
                                  problem.op_seconds), BLOCKS:
                                      blocks(problem, rng)
  }
  result.update((name, np.stack([p.devices[first] for p in proposed[name]]))
                for name in names if name in proposed)
  return {
      name: rows.astype(np.int32) for name, rows in result.items() if len(rows)
  }


def blocks(problem: placer_lib.Problem, rng: np.random.Generator) -> np.ndarray:
  """int [B, G], placements with one block of ops on each accelerator.

  A block is an interval of the topological order. The blocks of the first
  placement have equal work; the blocks of the others end at random.

  Args:
    problem: G groups.
    rng: Random numbers of the ends.
  """
  graph, cluster = problem.graph, problem.cluster
  devices = np.array(cluster.accelerators)
  order = graph.group_order
  work = np.cumsum(
      np.bincount(graph.groups, problem.op_seconds[:, devices].min(axis=1),
                  graph.num_groups)[order])
  rows = []
  config = search_config.DEFAULT.start
  large = graph.num_ops * cluster.num_devices > config.large
  for index in range((
      1 if large else config.blocks) if len(devices) > 1 else 0):
    ends = (np.sort(rng.random(len(devices)
                               - 1)) if index else np.arange(1, len(devices))
            / len(devices))
    row = np.empty(graph.num_groups, int)
    row[order] = devices[np.searchsorted(ends * work[-1], work)]
    rows.append(row)
  return constraints.made_legal(
      np.array(rows, int).reshape(-1, graph.num_groups), problem.allowed,
      cluster.host)
