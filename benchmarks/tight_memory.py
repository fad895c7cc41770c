"""Prints the steps of placers for networks that nearly fill the GPUs.

Run it from the repository, for example

  python -m benchmarks.tight_memory --fills .75 .98 --gpus 3 9 --json

Networks are those of `tests/helpers/tight_memory.py`: layers with heavy weights
(and optimizer state). A placement in blocks fills the given shares of the GPUs.
The host is much slower. Steps are simulated. For each placer the table has its
step over that of METIS, and over that of the local search. "out of memory"
(null as JSON) means that the placer found no placement that fits, although the
blocks do. With --journal=FILE a run that was ended goes on after the last row.
--page=FILE updates the tables of a page.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import pathlib
import shlex
import sys
import time
from typing import Any, Iterator, Sequence

import numpy as np

from benchmarks import pages
from benchmarks import tables as bench_tables
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables
from tests.helpers import clusters
from tests.helpers import tight_memory

# Shares of the memories that weights fill.
_FILLS = [.6, .75, .9, .98]
_NUM_GPUS = [2, 3, 4, 6, 9, 14]  # Numbers of GPUs of the tasks, unless given.
_METIS, _SEARCH = 'metis', 'local_search'
_PLACERS = ('m_topo', 'm_etf', 'm_sct', 'heft', 'single_device', _METIS,
            _SEARCH)
# Largest step of a placer that meets the target, over that of the local search.
_TARGET = 1.3
_TITLES = 'Steps', 'Targets'  # Titles of the tables of a page.


def _steps(problem: placer_lib.Problem, planted: np.ndarray,
           placers: list[str]) -> dict[str, dict[str, float]]:
  """Returns steps and seconds by placer; steps that do not fit are infinite."""
  result = {}
  for name in placers:
    start = time.perf_counter()
    placement = registry.create(name).place(problem)
    took_s = time.perf_counter() - start
    price = problem.evaluator.evaluate(problem.graph, placement)
    step_s = price.step_time_s if price.valid else math.inf
    result[name] = dict(step_s=step_s, placing_s=took_s)
  blocks = problem.evaluator.price_groups(problem.graph, planted[None])
  result['planted'] = dict(step_s=float(blocks.valid_seconds[0]), placing_s=0.)
  return result


def _row(case: tight_memory.Case, placers: list[str]) -> dict[str, Any]:
  costs = clusters.FixedCosts(case.seconds)
  problem = placer_lib.Problem(case.graph, case.cluster,
                               simulator.Simulator(case.cluster, costs))
  steps = _steps(problem, case.planted, placers)
  row: dict[str, Any] = dict(case=case.name, num_ops=case.graph.num_ops,
                             placers=steps)
  for other in (_METIS, _SEARCH):
    if other in steps:
      row[f'over {other}'] = {
          name: _ratio(own['step_s'], steps[other]['step_s'])
          for name, own in steps.items()
      }
  return row


def _ratio(own_s: float, other_s: float) -> float:
  """Returns the ratio of two steps; NaN if the other one does not fit."""
  return round(own_s / other_s, 4) if math.isfinite(other_s) else math.nan


def _missed(rows: list[dict[str, Any]], name: str) -> list[str]:
  """Returns how often a placer missed each target, and its worst ratios."""
  own = _seconds(rows, name)
  cells = [name, str(np.isinf(own).sum())]
  for other, most in ((_METIS, 1.), (_SEARCH, _TARGET)):
    if other not in rows[0]['placers'] or other == name:
      cells += ['-', '-']
      continue
    # The ratio is infinite if only this placer is out of memory, 0 if only the
    # other one is, NaN if both are.
    with np.errstate(invalid='ignore'):
      ratios = own / _seconds(rows, other)
    cells += [
        str((ratios > most + 1e-9).sum()),
        _summary(ratios[np.isfinite(ratios) & (ratios > 0)])
    ]
  seconds = sum(row['placers'][name]['placing_s'] for row in rows)
  return [*cells, f'{seconds / len(rows):.1f}']


def _seconds(rows: list[dict[str, Any]], name: str) -> np.ndarray:
  """Returns steps, float64 [R]; infinite where the placement does not fit."""
  found = [row['placers'][name]['step_s'] for row in rows]
  return np.array([math.inf if step_s is None else step_s for step_s in found])


def _summary(ratios: np.ndarray) -> str:
  """Summary of ratios, float64 [n], of the cases in which both fit."""
  if not ratios.size:
    return 'never both in memory'
  return (f'{ratios.max():.2f}x, '
          f'{np.exp(np.log(ratios).mean()):.3f}x')


def _cell(step_s: float | None) -> str:
  return 'out of memory' if step_s is None else f'{1e3 * step_s:.1f}'


def _chosen(flags: argparse.Namespace) -> list[tuple[str, bool, int, float]]:
  """Network, whether it trains, number of GPUs and fill of each case."""
  tasks = itertools.product(flags.networks, (True, False))
  # The share is spread over tasks, GPUs and fills, so that each task keeps
  # several fills.
  return [(*task, count, fill) for i, task in enumerate(tasks)
          for j, count in enumerate(flags.gpus)
          for k, fill in enumerate(flags.fills)
          if not (i - j - 2 * k) % flags.share]


def _rows(flags: argparse.Namespace) -> Iterator[dict[str, Any]]:
  """Yields all rows; rows in the journal are not computed again."""
  known = {}
  if flags.journal is not None and flags.journal.exists():
    for line in flags.journal.read_text(encoding='utf-8').splitlines():
      row = json.loads(line)
      known[row['case'], tuple(row['placers'])] = row
  chosen = _chosen(flags)
  for number, (network, training, count, fill) in enumerate(chosen):
    progress.doing(f'case {number + 1} of {len(chosen)}')
    case = tight_memory.case(network, count, fill, training,
                             clusters.FixedCosts)
    key = case.name, (*flags.placers, 'planted')
    if key not in known:
      known[key] = bench_tables.finite(_row(case, flags.placers))
      if flags.journal is not None:
        with flags.journal.open('a', encoding='utf-8') as file:
          file.write(json.dumps(known[key]) + '\n')
    yield known[key]


def _show(flags: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
  """Prints both tables or the rows, and puts the tables into the page."""
  steps: list[Sequence[str]] = [
      ('case', *flags.placers, 'planted'),
      *((row['case'], *(_cell(own['step_s'])
                        for own in row['placers'].values())) for row in rows)
  ]
  counts: list[Sequence[str]] = [
      ('placer', 'out of memory', f'slower than {_METIS}', 'worst, mean',
       f'over {_TARGET}x {_SEARCH}', 'worst, mean', 'seconds to place'),
      *(_missed(rows, name) for name in flags.placers)
  ]
  if flags.json:
    print(json.dumps(rows, indent=1))
  else:
    print(tables.titled('Simulated steps, ms', steps))
    print(tables.titled(f'Of {len(rows)}', counts))
  if flags.page is not None:
    # The path of the journal does not change the result.
    given = [a for a in sys.argv[1:] if not a.startswith('--journal=')]
    command = shlex.join(['python', '-m', 'benchmarks.tight_memory', *given])
    for title, (head, *cells) in zip(_TITLES, (steps, counts)):
      pages.Page(flags.page, title).replace(command, head, cells)


def main() -> int:
  """Runs the program; returns 0, or 2 for an unusable page or placer."""
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--networks', nargs='*', choices=tight_memory.NETWORKS,
                      default=list(tight_memory.NETWORKS))
  parser.add_argument('--fills', type=float, nargs='*', default=_FILLS)
  parser.add_argument('--gpus', type=int, nargs='*', default=_NUM_GPUS)
  parser.add_argument('--placers', nargs='*', default=list(_PLACERS))
  parser.add_argument('--share', type=int, default=1,
                      help='run only every n-th case')
  parser.add_argument('--journal', type=pathlib.Path,
                      help='file with a case a line; none is run twice')
  parser.add_argument('--page', type=pathlib.Path,
                      help='page with places for "Steps" and "Targets"')
  parser.add_argument('--json', action='store_true')
  flags = parser.parse_args()
  try:
    if flags.page is not None:
      for title in _TITLES:  # A page without places would lose the results.
        pages.Page(flags.page, title)
    with progress_line.shown('tight_memory'):
      rows = list(_rows(flags))
    _show(flags, rows)
  except errors.GdpError as error:
    print(f'tight_memory: error: {error}', file=sys.stderr)
    return 2
  return 0


if __name__ == '__main__':
  sys.exit(main())
