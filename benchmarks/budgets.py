"""Steps that placers find within short and long time limits.

Run it from the repository:

  python -m benchmarks.budgets --seconds=0.5,3 rnnlm-2@2xP100 amoebanet@4xP100

Every placer places every task once per budget. Budgets are processor seconds,
which include those of a placer's child processes. So other programs on the
machine hardly change the result. The placement of a placer gets control edges
if they are predicted to shorten the step.

With --json, prints a list of {"task", "seed", "placer", "budget_s", "step_s",
"taken_s"}: simulated step time, and processor seconds of the placer. Without
--json, prints tables. The first has the steps of the first placer by budget.
The second has the steps of each other placer over those of the first: geometric
mean, least and most over tasks. The third has the largest ratio of the first
placer's step to its step with less time.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any, Sequence

import numpy as np

from benchmarks import levers
from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.placers import best_of
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.problems import reading
from placer_model.benchmark import clocks

_TITLE = 'Budgets'
_PLACERS = 'gdp,gdp_no_policy,local_search,best_of'
_SECONDS = '0.25,0.5,1,3,10,30'
_Row = dict[str, Any]


def _rows(task: str, placers: Sequence[str], budgets: Sequence[float],
          seeds: int) -> list[_Row]:
  """Returns a row for each seed, placer and budget."""
  step = reading.read_task(task, progress.doing)
  simulator = step.simulator()
  read = step.problem(robust_evaluator.objective(simulator))
  rows = []
  for seed in range(seeds):
    for name in placers:
      for budget_s in budgets:
        progress.doing(f'{name}, {budget_s:g} s')
        problem = dataclasses.replace(read, seed=seed, time_budget_s=budget_s,
                                      simulator=simulator,
                                      clock=clocks.processor_s)
        rows.append({
            'task': task, 'seed': seed, 'placer': name, 'budget_s': budget_s,
            **_placed(problem, registry.create(name))
        })
  return rows


def _placed(problem: placer_lib.Problem,
            placer: placer_lib.Placer) -> dict[str, float]:
  """Returns the step that a placer finds, and the seconds of the placer."""
  begin_s = problem.clock()
  found = best_of.proposals_of(placer, problem)
  taken_s = problem.clock() - begin_s
  assert problem.simulator is not None
  return {
      'step_s': levers.step_s(problem, problem.simulator, found),
      'taken_s': taken_s
  }


def _mean(rows: Sequence[_Row], placer: str, budget_s: float) -> float:
  """Returns the geometric mean of steps over seeds, in seconds."""
  return tables.mean(row['step_s'] for row in rows
                     if row['placer'] == placer and row['budget_s'] == budget_s)


def _table(found: Sequence[Sequence[_Row]], placers: Sequence[str],
           budgets: Sequence[float]) -> tables.Table:
  ours, *others = placers
  cells = [[
      rows[0]['task'], *(tables.milliseconds(_mean(rows, ours, budget))
                         for budget in budgets)
  ] for rows in found]
  for other in others:
    ratios = [[
        _mean(rows, other, budget) / _mean(rows, ours, budget) for rows in found
    ] for budget in budgets]
    for title, mean in (('', tables.mean), (', least', np.min), (', most',
                                                                 np.max)):
      cells.append([
          f'{other} / {ours}{title}', *(tables.ratio(mean(r)) for r in ratios)
      ])
  cells.append([
      'over less time, most', *(tables.ratio(
          np.max([_over_less_s(rows, ours, budgets, index) for rows in found]))
                                for index in range(len(budgets)))
  ])
  return tables.Table(
      f'steps of {ours} by budget, simulated; seconds of the processor',
      ('task', *(f'{budget:g} s' for budget in budgets)), cells,
      [row for rows in found for row in rows])


def _over_less_s(rows: Sequence[_Row], placer: str, budgets: Sequence[float],
                 index: int) -> float:
  """Ratio of a step to the shortest step of smaller budgets; 1 without them."""
  steps = [_mean(rows, placer, budget) for budget in budgets[:index + 1]]
  return steps[-1] / min(steps[:-1], default=steps[-1])


def _numbers(text: str) -> tuple[float, ...]:
  return tuple(sorted(float(word) for word in text.split(',')))


main = tables.program_of_tasks(
    'budgets', __doc__, _TITLE, 'placing',
    lambda task, given: _rows(task, given.placers, given.seconds, given.seeds),
    lambda found, given: _table(found, given.placers, given.seconds),
    tables.option('--placers', type=tables.names, default=_PLACERS),
    tables.option('--seconds', type=_numbers, default=_SECONDS))

if __name__ == '__main__':
  sys.exit(main())
