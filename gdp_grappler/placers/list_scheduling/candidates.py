"""The best of several proposals by price."""

from __future__ import annotations

from concurrent import futures
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import cores
from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import annealing
from gdp_grappler.placers import found as found_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import single_device

# How often a proposer is asked, each time with less of what it exceeded.
_ROUNDS = 4
_MARGIN = 0.95

Proposer = Callable[[np.ndarray], np.ndarray]
_Question = tuple[Proposer, np.ndarray]


def best(
    problem: placer_lib.Problem, proposers: Sequence[Proposer],
    beyond: bool = True,
    tight: Sequence[Proposer] = ()) -> placement_lib.Placement:
  """Asks every proposer and keeps what is cheapest.

  What fits into memory beats what does not, and of what does not, the least
  overflow wins. Whose proposal would be faster than all that fit, but does not
  fit itself, is asked again with the capacities that it exceeded made smaller.
  When `Problem.time_budget_s` is over, no further one is asked but the first,
  and whoever has proposed nothing that fits.

  Args:
    problem: Has the price.
    proposers: From capacities [P] in bytes to devices of groups, int [G].
    beyond: Whether to look beyond them: at each device alone and, where not
      every accelerator can hold all, at what would be faster if it did not
      exceed a memory, made to fit (`relief`), and at what a short local search
      makes of the best.
    tight: Further proposers for where not every accelerator can hold all.
  """
  deadline = problem.deadline()
  found = found_lib.Found(problem)
  _ask(problem, proposers, found, deadline)
  if beyond:
    alone = found.see(single_device.on_each(problem))
    if not alone.valid[list(problem.cluster.accelerators)].all():
      if tight:
        _ask(problem, tight, found, deadline)
      found.mend()
      found.see([
          annealing.relieved(problem, found.best, refined=True,
                             deadline=deadline)
      ])
  return placement_lib.from_groups(problem.graph, found.best, problem.cluster)


def _ask(problem: placer_lib.Problem, proposers: Sequence[Proposer],
         found: found_lib.Found, deadline: deadlines.Deadline) -> None:
  """Shows what all propose, some of them several times."""
  room = problem.cluster.pool_bytes
  asked = [(propose, room.astype(float)) for propose in proposers]
  for _ in range(_ROUNDS):
    answers = _answers(asked, deadline)
    asked = [question for question, _ in answers]
    prices = found.see([row for _, row in answers])
    fastest_s = found.prices.valid_seconds.min()
    again = np.flatnonzero(~prices.valid & (prices.seconds < fastest_s))
    if not again.size or (deadline.passed and np.isfinite(fastest_s)):
      break
    asked = [(asked[k][0], _reduced(asked[k][1], prices.peak_bytes[k] / room))
             for k in again]


def _answers(
    asked: Sequence[_Question],
    deadline: deadlines.Deadline) -> list[tuple[_Question, np.ndarray]]:
  """Of the first, and of those that begin before the deadline."""

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


def _reduced(pool_bytes: np.ndarray, filled: np.ndarray) -> np.ndarray:
  """float64 [P], capacities [P], less where they were filled [P] too much."""
  return pool_bytes / np.maximum(filled, 1) * np.where(filled > 1, _MARGIN, 1)
