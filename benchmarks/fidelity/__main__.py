"""Prices and measures placements of four graphs on two local workers.

The study takes about half an hour on two quiet cores. `--emulated` runs
placements of six workloads of papers on emulated GPUs instead, in small and
full size. This takes hours, and other programs may run at the same time. The
same command, run again, goes on after the last result. `--fresh` measures
everything again. `--report` only writes the page of the four graphs again.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys

from gdp_grappler import environment

os.environ.update(environment.without_plugin())

from benchmarks.fidelity import emulated
from benchmarks.fidelity import graphs
from benchmarks.fidelity import report
from benchmarks.fidelity import study
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import cluster_file
from gdp_grappler.reports import progress_line
from gdp_grappler.reports import tables

_RESULTS = 'results.json.gz'


def main() -> int:
  """Runs the study; returns 0, or 2 if this machine cannot run the study."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--out_dir', type=pathlib.Path,
                      default=pathlib.Path('docs/results/fidelity'))
  parser.add_argument('--work_dir', type=pathlib.Path,
                      default=pathlib.Path('fidelity_output'),
                      help='keeps what was measured')
  parser.add_argument('--emulated', action='store_true',
                      help='on emulated GPUs')
  parser.add_argument('--graphs', default=','.join(graphs.BUILDERS))
  parser.add_argument('--tasks', default=','.join(emulated.TASKS),
                      help='of --emulated')
  parser.add_argument('--fresh', action='store_true')
  parser.add_argument('--report', action='store_true',
                      help='only write the page of --out_dir again')
  arguments = parser.parse_args()
  if arguments.fresh:
    shutil.rmtree(arguments.work_dir, ignore_errors=True)
  try:
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    if arguments.report:
      report.write(arguments.out_dir, *study.load(arguments.out_dir / _RESULTS))
    else:
      with progress_line.shown('fidelity'):
        found = (_run_emulated if arguments.emulated else _run)(arguments)
      print(found)
  except errors.GdpError as error:
    print(f'fidelity: error: {error}', file=sys.stderr)
    return 2
  return 0


def _run(arguments: argparse.Namespace) -> str:
  names = arguments.graphs.split(',')
  unknown = [name for name in names if name not in graphs.BUILDERS]
  if unknown:
    raise errors.GdpError(f'Unknown graph "{unknown[0]}"; there are '
                          f'{", ".join(graphs.BUILDERS)}.')
  path = arguments.work_dir / 'cluster.json'
  if path.exists():
    cluster = cluster_file.read(str(path))
  else:
    cluster = study.measured_cluster(_tell)
    cluster_file.write(str(path), cluster)
  rows, orders = [], []
  for name in names:
    more_rows, more_orders = study.run(name, cluster, arguments.work_dir, _tell)
    rows += more_rows
    orders += more_orders
    study.save(arguments.out_dir / _RESULTS, rows, orders, cluster)
    report.write(arguments.out_dir, rows, orders, cluster)
  return tables.text(report.agreement(rows))


def _run_emulated(arguments: argparse.Namespace) -> str:
  folder = arguments.work_dir / 'emulated'
  folder.mkdir(exist_ok=True)
  whole = emulated.Result([], [])
  for task in arguments.tasks.split(','):
    result = emulated.run(task, folder, _tell)
    whole.fifo.extend(result.fifo)
    whole.ordered.extend(result.ordered)
    emulated.write(arguments.out_dir, whole)
  return emulated.agreement(whole, tables.text)


def _tell(text: str) -> None:
  """Prints a line that stays on the screen, because the study takes hours."""
  progress.make_room()
  print(text, file=sys.stderr, flush=True)


if __name__ == '__main__':
  sys.exit(main())
