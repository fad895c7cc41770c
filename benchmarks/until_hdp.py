"""Time until the default placer is as good as the best placement of HDP.

Run it from the repository, on one core (`taskset -c 0`):

  python -m benchmarks.until_hdp rnnlm-2@2xP100 amoebanet@4xP100

HDP learns each task for a budget of processor seconds. Then the default placer,
without the policy, has the same budget to find a step in FIFO order that is not
slower.

With --json, prints a list of {"task", "seed", "hdp_s", "hdp_priced",
"hdp_took_s", "ours_s", "ours_priced", "ours_took_s"}. "_s" is the simulated
step. "_priced" and "_took_s" are priced placements and processor seconds. For
HDP they count until its best placement. For the default placer they count until
a placement that is not slower than HDP's, with the proposals of the anchors.
They are null if there is no such placement. Without --json, prints a table of
these figures and of HDP / ours: geometric mean, least and most over seeds. If
some searches find no such placement, the figures are those of the others, and
the table has their number.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import sys
import time
from typing import Any, Sequence

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.placers import default_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import reading
from placer_model.hdp import placers as hdp

_TITLE = 'Until HDP'
_HEAD = ('task', 'HDP', 'priced', 'seconds', 'priced by us', 'seconds',
         'HDP / ours, priced', 'least', 'most', 'HDP / ours, seconds')
_Row = dict[str, Any]


def _rows(task: str, seconds: float, seeds: int) -> list[_Row]:
  """Returns a row for each seed."""
  step = reading.read_task(task, progress.doing)
  rows = []
  for seed in range(seeds):
    watched = functools.partial(_curve, step, seed, seconds)
    theirs = watched(hdp.HdpPlacer())
    priced, took_s, best_s = theirs[-1]
    ours = watched(default_placer.DefaultPlacer(asks_policy=False),
                   enough_s=best_s)
    row = {
        'task': task, 'seed': seed, 'hdp_s': best_s, 'hdp_priced': priced,
        'hdp_took_s': took_s
    }
    until = next((entry for entry in ours if entry[2] <= best_s), None)
    row.update(
        zip(('ours_priced', 'ours_took_s', 'ours_s'), until or (None,) * 3))
    rows.append(row)
  return rows


class _Reached(Exception):
  """Raised to end a search that has found a step as short as HDP's."""


class _Watch(recording_evaluator.Recorder):
  """Ends a search that has found a step of `enough_s`."""

  enough_s = 0.

  def _record(self, *args: Any) -> None:
    super()._record(*args)
    if self.best_step_time_s <= self.enough_s:
      raise _Reached


def _curve(step: step_lib.Step, seed: int, seconds: float,
           placer: placer_lib.Placer,
           enough_s: float = 0.) -> list[tuple[int, float, float]]:
  """Returns the `recording_evaluator.Recorder.curve` of a search."""
  watch = _Watch(step.problem().evaluator, time.process_time)
  watch.enough_s = enough_s
  problem = dataclasses.replace(step.problem(), seed=seed, evaluator=watch,
                                time_budget_s=seconds, clock=time.process_time)
  with contextlib.suppress(_Reached):
    placer.place(problem)
  return watch.curve


def _table(found: Sequence[Sequence[_Row]]) -> tables.Table:
  rows = [row for of_task in found for row in of_task]
  cells = [[of_task[0]['task'], *_figures(of_task)] for of_task in found]
  cells.append(['geometric mean', '', '', '', '', '', *_figures(rows)[5:]])
  return tables.Table('steps simulated, seconds of the processor', _HEAD, cells,
                      rows)


def _figures(rows: Sequence[_Row]) -> list[str]:
  """Returns the cells of a row, over the seeds in which ours gets there."""
  done = [row for row in rows if row['ours_priced'] is not None]
  mean = functools.partial(_mean, done)
  if not done:
    return [
        tables.milliseconds(_mean(rows, 'hdp_s')), *[''] * 4, 'never', *[''] * 3
    ]
  ratios = [row['hdp_priced'] / row['ours_priced'] for row in done]
  some = '' if len(done) == len(rows) else f' ({len(done)} of {len(rows)})'
  return [
      tables.milliseconds(mean('hdp_s')), f'{mean("hdp_priced"):,.0f}',
      f'{mean("hdp_took_s"):.1f}', f'{mean("ours_priced"):,.0f}',
      f'{mean("ours_took_s"):.2f}',
      f'{statistics.geometric_mean(ratios):.1f}{some}', f'{min(ratios):.1f}',
      f'{max(ratios):.1f}', f'{mean("hdp_took_s") / mean("ours_took_s"):.1f}'
  ]


def _mean(rows: Sequence[_Row], name: str) -> float:
  return statistics.geometric_mean(row[name] for row in rows)


main = tables.program_of_tasks(
    'until_hdp', __doc__, _TITLE, 'searching',
    lambda task, given: _rows(task, given.seconds, given.seeds),
    lambda found, _: _table(found), seconds=30.)

if __name__ == '__main__':
  sys.exit(main())
