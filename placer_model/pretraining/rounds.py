"""Rounds of drawing problems, working on them and learning."""

from __future__ import annotations

from typing import Callable, Sequence, TypeVar

from gdp_grappler import progress
from gdp_grappler.processes import jobs as jobs_lib

_Result = TypeVar('_Result')


def drawn(team: jobs_lib.Team[jobs_lib.Call], count: int, seed: int,
          number: int) -> list[_Result]:
  """What comes of the first problems of a round that are of any use.

  Each has random numbers of its own, so that it is the same one whoever draws
  it, and when.

  Args:
    team: Draws and works on a problem, given a seed; None says that it is of no
      use.
    count: Of problems that are.
    seed: Of the run.
    number: Of the round, from 0.

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
  """Rounds until all are done or the time is up.

  Args:
    done: Those that are; it grows by one with each.
    last: How many there should be.
    one: Does a round; what is to be told of it.
    in_time: Whether one may begin.
    tell: Hears a line per round.
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
  """Whether there is time left, from now on.

  Args:
    budget_s: Seconds; None for any time.
    clock: Seconds since any moment.
  """
  begin = clock()
  return lambda: budget_s is None or clock() - begin < budget_s
