"""Draws the problems of a round, wherever they are worked on."""

from __future__ import annotations

from typing import TypeVar

from gdp_grappler.processes import jobs as jobs_lib

_Result = TypeVar('_Result')


def first(team: jobs_lib.Team[jobs_lib.Call], count: int, seed: int,
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
  drawn = 0
  while missing := count - len(found):
    jobs = [
        jobs_lib.Call(f'problem {problem} of round {number + 1}',
                      (seed, number, 0, problem))
        for problem in range(drawn, drawn + missing)
    ]
    results = team.results(jobs, shown=False)
    found += [result for result in results if result is not None]
    drawn += missing
  return found
