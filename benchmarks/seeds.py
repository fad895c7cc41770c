"""Shows results of gdp_bench with several seeds in one table, with spread.

Run it from the repository, on folders of gdp_bench that differ in --seed:

  gdp_bench --placers=local_search,gdp_held_out --seed=0 --out_dir=bench/0 ...
  gdp_bench --placers=local_search,gdp_held_out --seed=1 --out_dir=bench/1 ...
  python -m benchmarks.seeds bench/0 bench/1

Prints the step of each placer on each task: the geometric mean over seeds, in
FIFO order | with control edges. A second table has the steps of each placer
over those of the placer --ours. Its rows are geometric means over all tasks,
over large tasks (8 accelerators or more, or more than 30,000 ops), and over all
other tasks. The least and the most of the means of single seeds are in
brackets. The last row compares --ours with edges with the other placers without
edges. With --json, prints a list of {"task", "seed", "placer", "step_time_s",
"ordered_step_time_s"} instead.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import statistics
import sys
from typing import Any, Sequence

from benchmarks import tables
from gdp_grappler import errors
from placer_model.benchmark import figures
from placer_model.benchmark import records

# A task with this number of GPUs is large.
_LARGE_DEVICES = 8
_LARGE_OPS = 30_000  # A task with more ops is large.
_ORDERS = figures.FIFO, figures.ORDERED
_Row = dict[str, Any]


def _table(arguments: argparse.Namespace) -> tables.Table:
  runs = [_run(folder) for folder in arguments.folders]
  placers = list(runs[0][0]['cells'])
  if arguments.ours not in placers:
    raise errors.GdpError(f'--ours={arguments.ours} is in none of the runs; '
                          f'there are {", ".join(placers)}.')
  for folder, run in zip(arguments.folders, runs):
    if [_kind(t) for t in run] != [_kind(t) for t in runs[0]]:
      raise errors.GdpError(
          f'{folder} has not the tasks and placers of {arguments.folders[0]}; '
          'give runs that differ in their seeds alone.')
  if len({tuple(_seeds(run)) for run in runs}) < len(runs):
    raise errors.GdpError('Two of the runs have the same seeds; give runs that '
                          'differ in them.')
  cells = [[tasks[0]['name'], *(_steps(tasks, placer) for placer in placers)]
           for tasks in zip(*runs)]
  for title, wanted in ('over ours', (True, False)), ('large',
                                                      (True,)), ('others',
                                                                 (False,)):
    chosen = [[t for t in run if _is_large(t) in wanted] for run in runs]
    cells.append([
        title, *(' | '.join(
            _spread(chosen, placer, order, arguments.ours, order)
            for order in _ORDERS) for placer in placers)
    ])
  cells.append([
      'over ours with edges',
      *(_spread(runs, placer, figures.FIFO, arguments.ours, figures.ORDERED)
        for placer in placers)
  ])
  return tables.Table('steps, first in, first out | with control edges',
                      ('task', *placers), cells, _rows(runs))


def _run(folder: pathlib.Path) -> list[Any]:
  """Returns the tasks of a run, each with its seed."""
  found = records.read_results(folder / records.RESULTS)
  tasks: list[Any] = found['tasks']
  for task in tasks:
    for placer, cell in task['cells'].items():
      # A placement that failed or does not fit has no steps.
      if not all(0 < (cell.get(order) or 0) < math.inf for order in _ORDERS):
        raise errors.GdpError(f'{folder}: {task["name"]} has no steps of '
                              f'{placer} in both orders.')
    if list(task['cells']) != list(tasks[0]['cells']):
      raise errors.GdpError(f'{folder}: {task["name"]} has not the placers of '
                            f'{tasks[0]["name"]}; give runs that are complete.')
  if not tasks:
    raise errors.GdpError(f'{folder} has no tasks.')
  return tasks


def _kind(task: Any) -> tuple[Any, ...]:
  """Returns the fields in which runs with several seeds are equal."""
  return task['name'], task['num_ops'], list(task['cells']), [
      {**cell['settings'], 'seed': None} for cell in task['cells'].values()
  ]


def _seeds(run: Sequence[Any]) -> list[Any]:
  return [c['settings']['seed'] for task in run for c in task['cells'].values()]


def _is_large(task: Any) -> bool:
  return bool(task['num_accelerators'] >= _LARGE_DEVICES or
              task['num_ops'] > _LARGE_OPS)


def _steps(tasks: Sequence[Any], placer: str) -> str:
  """Returns the steps of a task, by seed."""
  return ' | '.join(
      tables.milliseconds(
          statistics.geometric_mean(t['cells'][placer][order] for t in tasks))
      for order in _ORDERS)


def _spread(runs: Sequence[Sequence[Any]], placer: str, order: str, ours: str,
            our_order: str) -> str:
  """'1.041 (1.036-1.049)', means over tasks: of all seeds, and of single ones.

  '-' where there is no such task.
  """
  means = [
      statistics.geometric_mean(t['cells'][placer][order]
                                / t['cells'][ours][our_order] for t in run)
      for run in runs if run
  ]
  if not means:
    return '-'
  mean = f'{statistics.geometric_mean(means):.3f}'
  if len(means) == 1:
    return mean
  return f'{mean} ({min(means):.3f}-{max(means):.3f})'


def _rows(runs: Sequence[Sequence[Any]]) -> list[_Row]:
  return [{
      'task': task['name'], 'seed': cell['settings']['seed'], 'placer': placer,
      **{order: cell[order] for order in _ORDERS}
  } for run in runs for task in run for placer, cell in task['cells'].items()]


main = tables.program(
    'seeds', __doc__, lambda given: given.title, _table,
    tables.option('folders', nargs='+', metavar='FOLDER', type=pathlib.Path),
    tables.option('--ours', default='gdp_held_out'),
    tables.option('--title', default='Seeds', help='of the table in a page'))

if __name__ == '__main__':
  sys.exit(main())
