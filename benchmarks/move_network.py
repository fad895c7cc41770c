"""What the network that chooses moves brings a search, at equal seconds.

Run it from the repository:

  python -m benchmarks.move_network rnnlm-2@2xP100 amoebanet@4xP100

Each search begins with what cheap placers propose, and anneals, first in, first
out, for so many seconds of the processor: once pricing all that it draws, once
what the shipped network chooses. Prints a list of {"task", "seed", "plain_s",
"chosen_s", "plain_priced", "chosen_priced"}: simulated steps of the best that
was found, and placements that were priced. Without --json, a table of the steps
and of plain / chosen: the geometric mean, the least and the most over seeds.
"""

from __future__ import annotations

import statistics
import sys
import time
from typing import Any, Sequence

import numpy as np

from benchmarks import tables
from gdp_grappler import progress
from gdp_grappler.placers import annealing
from gdp_grappler.placers import local_search
from gdp_grappler.placers import move_filter
from gdp_grappler.placers import shipped_moves
from gdp_grappler.problems import reading

_TITLE = 'Move network'
_HEAD = ('task', 'plain', 'chosen', 'plain / chosen', 'least', 'most')
_Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 2 after a line about an error of ours.
  """
  parser = tables.parser('move_network', __doc__)
  parser.add_argument('tasks', nargs='+', metavar='GRAPH@CLUSTER')
  parser.add_argument('--seconds', type=float, default=10.)
  parser.add_argument('--seeds', type=int, default=3)
  arguments = tables.parse(parser, argv)
  return tables.show(
      arguments, _TITLE, lambda: _table(
          progress.of_each(
              'searching', arguments.tasks, lambda task: _rows(
                  task, arguments.seconds, arguments.seeds), str)))


def _rows(task: str, seconds: float, seeds: int) -> list[_Row]:
  """One of each seed."""
  problem = reading.read_task(task, progress.doing).problem()
  starts = np.concatenate(
      list(
          local_search.starting_points(problem, local_search.DEFAULT_STARTS,
                                       np.random.default_rng(0)).values()))
  rows = []
  for seed in range(seeds):
    row: _Row = {'task': task, 'seed': seed}
    for name, network in (('plain', None), ('chosen', shipped_moves.network())):
      model = (None if network is None else move_filter.MoveFilter(
          problem, network))
      search = annealing.Annealing(problem, starts, np.random.default_rng(seed),
                                   model)
      limit = local_search.Limit(sys.maxsize, seconds, clock=time.process_time)
      while (done := limit.progress(search.evaluations)) < 1:
        search.step(done, annealing.BATCH)
      row[f'{name}_s'] = search.best_key[-1]
      row[f'{name}_priced'] = search.evaluations
    rows.append(row)
  return rows


def _table(found: Sequence[Sequence[_Row]]) -> tables.Table:
  cells, means = [], []
  for rows in found:
    plain, chosen = (
        [row[f'{name}_s'] for row in rows] for name in ('plain', 'chosen'))
    ratios = [p / c for p, c in zip(plain, chosen)]
    means.append(statistics.geometric_mean(ratios))
    cells.append([
        rows[0]['task'], *(tables.milliseconds(statistics.geometric_mean(steps))
                           for steps in (plain, chosen)),
        *(f'{r:.3f}' for r in (means[-1], min(ratios), max(ratios)))
    ])
  cells.append([
      'geometric mean', '', '', f'{statistics.geometric_mean(means):.3f}',
      f'{min(means):.3f}', f'{max(means):.3f}'
  ])
  return tables.Table('steps simulated, seconds of the processor', _HEAD, cells,
                      [row for rows in found for row in rows])


if __name__ == '__main__':
  sys.exit(main())
