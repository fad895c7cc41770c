"""Random graphs for every placer and damaged files for every reader.

Run it from the folder of the tests by `python -m fuzz --graphs=300`, or by
`make fuzz FUZZ_GRAPHS=300`. Each seed is one graph on one cluster (`cases`).
Each placement is checked against the rules (`rules`). Some cases also read
damaged or hostile files (`strangers`). The program prints broken rules with the
command that repeats the case, and a last line of counts. The exit code is 1 if
a rule was broken. With --journal=FILE, a run that was killed continues.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import sys
from typing import Iterator

from fuzz import journal as journal_lib
from fuzz import rules
from fuzz import runs


def main() -> int:
  """Runs the program, and returns its exit code."""
  flags = _flags()
  totals: collections.Counter[str] = collections.Counter()
  slowest, took_s = runs.Report(flags.seed, 0, 0, ()), 0.
  for report in _reports(flags):
    totals.update(graphs=1, placements=report.placements, checks=report.checks,
                  files=report.files, broken=len(report.broken))
    took_s += report.took_s
    slowest = max(slowest, report, key=lambda each: each.slowest_s)
    for broken in report.broken:
      print(broken, flush=True)
  print(
      f'fuzz: {totals["graphs"]:,} graphs, {totals["placements"]:,} '
      f'placements, {totals["checks"]:,} checks, {totals["files"]:,} files of '
      f'strangers, {totals["broken"]:,} broken; '
      f'{took_s:,.0f} s in {flags.jobs} processes, the slowest placement '
      f'{slowest.slowest_s:.0f} s ({slowest.slowest}, seed {slowest.seed})')
  return int(totals['broken'] > 0)


def _reports(flags: argparse.Namespace) -> Iterator[runs.Report]:
  """Yields the reports in the journal, then those of further cases."""
  seeds = range(flags.seed, flags.seed + flags.graphs)
  if flags.journal is None:
    yield from runs.run(seeds, flags.placers, flags.jobs)
    return
  journal = journal_lib.Journal(flags.journal, flags.placers)
  left = set(seeds)
  for report in journal.reports(seeds):
    left.remove(report.seed)
    yield report
  for report in runs.run(sorted(left), flags.placers, flags.jobs):
    journal.add(report)
    yield report


def _flags() -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='fuzz', description=__doc__,
      formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--graphs', type=int, default=300, help='how many')
  parser.add_argument('--seed', type=int, default=0, help='of the first')
  parser.add_argument(
      '--placers', type=_placers, default=(),
      help='names with commas; by default all that need no policy, slow ones\n'
      'for every third graph or every fiftieth, and "strangers": damaged\n'
      'files for every reader, policies and models that mean harm')
  parser.add_argument('--jobs', type=int, default=os.cpu_count(),
                      help='processes')
  parser.add_argument(
      '--journal', type=pathlib.Path,
      help='file with a report a line; what is in it is not examined again')
  return parser.parse_args()


def _placers(text: str) -> tuple[str, ...]:
  chosen = tuple(text.split(','))
  known = (*rules.names(), runs.STRANGERS)
  unknown = set(chosen) - set(known)
  if unknown:
    raise argparse.ArgumentTypeError(
        f'unknown: {", ".join(sorted(unknown))}; there are '
        f'{", ".join(known)}')
  return chosen


if __name__ == '__main__':
  sys.exit(main())
