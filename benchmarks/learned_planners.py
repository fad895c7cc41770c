"""Steps that the papers' learned planners find in equal processor seconds.

Run it from the repository, on one core (`taskset -c 0`):

  python -m benchmarks.learned_planners rnnlm-2@2xP100 amoebanet@4xP100

HDP and GDP-one, the published methods, learn each task for equal processor
seconds, which include building and compiling their networks. So other programs
on the core make a run longer, but do not change the result. With --json, prints
a list of {"task", "seed", "hdp_s", "gdp_paper_s", "hdp_priced",
"gdp_paper_priced"}: simulated steps of the best placements in FIFO order, and
numbers of priced placements. Without --json, prints a table of the steps and of
HDP / GDP-one: geometric mean, least and most over seeds.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from typing import Any, Sequence

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.problems import reading
from placer_model.hdp import placers as hdp
from placer_model.training import placers as training

_TITLE = 'Learned planners'
_HEAD = ('task', 'HDP', 'GDP-one', 'HDP / GDP-one', 'least', 'most')
_PLANNERS = {'hdp': hdp.HdpPlacer, 'gdp_paper': training.GdpPlacer}
_Row = dict[str, Any]


def _rows(task: str, seconds: float, seeds: int) -> list[_Row]:
  """Returns a row for each seed."""
  step = reading.read_task(task, progress.doing)
  simulator, rows = step.simulator(), []
  for seed in range(seeds):
    row: _Row = {'task': task, 'seed': seed}
    for name, make in _PLANNERS.items():
      watched = recording_evaluator.Recorder(step.problem().evaluator)
      problem = dataclasses.replace(step.problem(), seed=seed,
                                    evaluator=watched, time_budget_s=seconds,
                                    clock=time.process_time)
      placement = make().place(problem)
      found = simulator.evaluate(problem.graph, placement)
      row[f'{name}_s'] = found.step_time_s if found.valid else math.inf
      row[f'{name}_priced'] = watched.evaluations
    rows.append(row)
  return rows


def _table(found: Sequence[Sequence[_Row]]) -> tables.Table:
  steps = 'hdp_s', 'gdp_paper_s'
  return tables.Table('steps simulated, seconds of the processor', _HEAD,
                      tables.step_cells(found, steps, steps),
                      [row for rows in found for row in rows])


main = tables.program_of_tasks(
    'learned_planners', __doc__, _TITLE, 'learning',
    lambda task, given: _rows(task, given.seconds, given.seeds),
    lambda found, _: _table(found), seconds=30.)

if __name__ == '__main__':
  sys.exit(main())
