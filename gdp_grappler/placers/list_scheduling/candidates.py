"""Prices the proposals of list schedulers, and keeps the best one."""

from __future__ import annotations

import abc
from concurrent import futures
from typing import Sequence

import numpy as np

from gdp_grappler import cores
from gdp_grappler import deadlines
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.search import annealing
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements

# Largest number of calls of one proposer. If a proposal overflows a memory, the
# next call gets a smaller capacity of that memory.
_ROUNDS = 4
# Share of the reduced capacity that the next call gets.
_MARGIN = 0.95

_Question = tuple[proposals.Proposer, np.ndarray]


class ListSchedulingPlacer(abc.ABC):
  """Keeps the best by price of many schedules.

  Attributes:
    published: Whether to make only the proposal of the paper.
  """

  # Configurations for problems in which one accelerator cannot hold all ops.
  _tight: Sequence[proposals.ScheduleConfig] = ()

  def __init__(self, published: bool = False) -> None:
    self.published = published

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      GdpError: a library of the placer is not installed.
    """
    shared = proposals.Proposals(problem.graph, problem.cluster,
                                 problem.busy_seconds, problem.allowed)
    return best(problem, self._proposers(shared),
                other_sources=not self.published,
                tight=[shared.proposer(config) for config in self._tight])

  @abc.abstractmethod
  def _proposers(self,
                 shared: proposals.Proposals) -> Sequence[proposals.Proposer]:
    """The proposers to call, at least one."""


def best(
    problem: placer_lib.Problem, proposers: Sequence[proposals.Proposer],
    other_sources: bool = True, tight: Sequence[proposals.Proposer] = ()
) -> placement_lib.Placement:
  """Calls every proposer and returns the best placement by price.

  A placement that fits into the memories is better than one that does not. Of
  placements that do not fit, the one with the least overflow is better. A
  proposal may overflow a memory and still be faster than all placements that
  fit. Then its proposer is called again, with less capacity of that memory.
  After `Problem.time_budget_s` a round calls only its first proposer. Further
  rounds follow as long as no placement fits.

  Args:
    problem: Prices the placements.
    proposers: Proposers to call, at least one.
    other_sources: Whether to price placements of other sources, too. Placements
      of all ops on one device are priced even if there is no time. If not every
      accelerator can hold all ops, two more sources follow: repair of
      placements that overflow but are faster (`memory_repair`), and, if prices
      are simulated, a short local search from the best placement.
    tight: Further proposers, called if not every accelerator can hold all ops.
  """
  deadline = problem.deadline()
  priced = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
  alone = (priced.add(one_device.on_each(problem.cluster, problem.allowed))
           if other_sources else None)
  _ask(problem, proposers, priced, deadline)
  if (alone is not None and not (deadline.passed and priced.fits) and
      not alone.valid[list(problem.cluster.accelerators)].all()):
    if tight:
      _ask(problem, tight, priced, deadline)
    memory_fit.repair_faster(problem, priced, deadline)
    if problem.evaluator.simulated:  # Thousands of real steps take too long.
      priced.add([
          annealing.find_fitting(problem, priced.best, refined=True,
                                 deadline=deadline)
      ])
  return placement_lib.from_groups(problem.graph, priced.best, problem.cluster)


def _ask(problem: placer_lib.Problem, proposers: Sequence[proposals.Proposer],
         priced: priced_placements.PricedPlacements,
         deadline: deadlines.Deadline) -> None:
  """Prices the proposals of all proposers; calls some of them repeatedly."""
  room = problem.cluster.pool_bytes
  asked = [(propose, room.astype(float)) for propose in proposers]
  for _ in range(_ROUNDS):
    answers = _answers(asked, deadline)
    asked = [question for question, _ in answers]
    prices = priced.add([row for _, row in answers], ceiling_s=None)
    fastest_s = priced.prices.valid_seconds.min()
    again = np.flatnonzero(~prices.valid & (prices.seconds < fastest_s))
    if not again.size or (deadline.passed and np.isfinite(fastest_s)):
      break
    asked = [(asked[k][0], reduced(asked[k][1], prices.peak_bytes[k] / room))
             for k in again]


def _answers(
    asked: Sequence[_Question],
    deadline: deadlines.Deadline) -> list[tuple[_Question, np.ndarray]]:
  """Proposals, int [G] each, of the first call and of calls before a deadline.

  Args:
    asked: Proposers with the capacities to call them with.
    deadline: A call that has not begun by then is left out.
  """

  def answer(index: int) -> np.ndarray | None:
    if index and deadline.passed:
      return None
    propose, pool_bytes = asked[index]
    return propose(pool_bytes)

  with futures.ThreadPoolExecutor(cores.own()) as pool:
    rows = list(pool.map(answer, range(len(asked))))
  return [
      (question, row) for question, row in zip(asked, rows) if row is not None
  ]


def reduced(pool_bytes: np.ndarray, filled: np.ndarray) -> np.ndarray:
  """float64 [P], capacities for the next call, in bytes.

  Args:
    pool_bytes: [P], capacities of this call, in bytes.
    filled: [P], peak of each memory, as a share of its size.
  """
  return pool_bytes / np.maximum(filled, 1) * np.where(filled > 1, _MARGIN, 1)
