"""Random graphs on random clusters for every placer, until a rule breaks.

Run it from the folder of the tests: `python -m fuzz --graphs=300`, or by `make
fuzz FUZZ_GRAPHS=300`. Each seed is one graph on one cluster (`cases`), each
placement is held against the rules (`rules`). Broken rules are printed with the
command that shows them again. Ends with one line of counts, and with 1 if any
rule was broken.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time

from fuzz import rules
from fuzz import runs


def main() -> int:
  """Runs the program; its exit code."""
  flags = _flags()
  start = time.monotonic()
  totals: collections.Counter[str] = collections.Counter()
  slowest = runs.Report(flags.seed, 0, 0, ())
  for report in runs.run(range(flags.seed, flags.seed + flags.graphs),
                         flags.placers, flags.jobs):
    totals.update(graphs=1, placements=report.placements, checks=report.checks,
                  broken=len(report.broken))
    slowest = max(slowest, report, key=lambda each: each.slowest_s)
    for broken in report.broken:
      print(broken, flush=True)
  print(
      f'fuzz: {totals["graphs"]:,} graphs, {totals["placements"]:,} '
      f'placements, {totals["checks"]:,} checks, {totals["broken"]:,} broken; '
      f'{time.monotonic() - start:.0f} s, the slowest placement '
      f'{slowest.slowest_s:.0f} s ({slowest.slowest}, seed {slowest.seed})')
  return int(totals['broken'] > 0)


def _flags() -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='fuzz', description=__doc__,
      formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument('--graphs', type=int, default=300, help='how many')
  parser.add_argument('--seed', type=int, default=0, help='of the first')
  parser.add_argument(
      '--placers', type=_placers, default=(),
      help='names with commas; by default all that need no policy, those that\n'
      'start a process for every tenth graph')
  parser.add_argument('--jobs', type=int, default=os.cpu_count(),
                      help='processes')
  return parser.parse_args()


def _placers(text: str) -> tuple[str, ...]:
  chosen = tuple(text.split(','))
  unknown = set(chosen) - set(rules.names())
  if unknown:
    raise argparse.ArgumentTypeError(
        f'unknown: {", ".join(sorted(unknown))}; there are '
        f'{", ".join(rules.names())}')
  return chosen


if __name__ == '__main__':
  sys.exit(main())
