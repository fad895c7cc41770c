"""Rounds of a pretraining run, and the drawing of their problems."""

from __future__ import annotations

from typing import Callable, Sequence, TypeVar

from gdp_grappler import progress
from gdp_grappler.processes import jobs as jobs_lib

_Result = TypeVar('_Result')


def drawn(team: jobs_lib.Team[jobs_lib.Call], count: int, seed: int,
          number: int) -> list[_Result]:
  """Returns the results of the first usable problems of a round.

  Each problem has its own random numbers, so it does not depend on the worker
  that draws it.

  Args:
    team: Draws a problem from a seed and works on it; returns None for an
      unusable problem.
    count: Number of results.
    seed: Seed of the run.
    number: Number of the round, from 0.

  Raises:
    JobError: the team failed.
  """
  found: list[_Result] = []
  asked = 0
  while missing := count - len(found):
    jobs = [
        jobs_lib.Call(f'problem {problem} of round {number + 1}',
                      (seed, number, 0, problem))
        for problem in range(asked, asked + missing)
    ]
    results = team.results(jobs, shown=False)
    found += [result for result in results if result is not None]
    asked += missing
  return found


def go_on(done: Sequence[object], last: int, one: Callable[[], str],
          in_time: Callable[[], bool], tell: Callable[[str], None]) -> None:
  """Runs rounds until all are done or the time is up.

  Args:
    done: Rounds that are done. It grows by one with each round.
    last: Number of rounds of the run.
    one: Runs a round; returns a line about it.
    in_time: Returns whether a round may begin.
    tell: Called with a line per round.
  """
  already = len(done)
  while len(done) < last:
    if not in_time():
      tell(f'The time is up after {len(done)} of {last} rounds.')
      break
    tell(one())
    progress.reached((len(done) - already) / (last - already))


def clock_of(budget_s: float | None,
             clock: Callable[[], float]) -> Callable[[], bool]:
  """Returns a function that says whether time is left.

  Args:
    budget_s: Time limit in seconds, from now on; None for no limit.
    clock: Returns seconds since a fixed moment.
  """
  begin = clock()
  return lambda: budget_s is None or clock() - begin < budget_s
