r"""Tests whether placement changes the numbers of training programs.

Run it from the repository:

  python -m benchmarks.equality [--json] [--page=FILE] [PROGRAM ...]

Each program trains for a few steps over four logical CPUs, in a fresh process
for each program. It trains twice without placement, and once with a random
placement, so that ops and variables really change their devices. A program NAME
runs under Keras 3 or without Keras, NAME:tf_keras under tf_keras. The program
prints a row for each NAME, or for all programs if no name is given.

The bound: the numbers with placement are equal to the last bit. If two runs
without placement differ, a difference of 1e-5 of the largest number of a tensor
is allowed. The exit code is 1 if a program breaks the bound or fails, or if it
was not placed although it should have been. With --page=FILE the table replaces
the table between two comments of a page in Markdown.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Sequence

from benchmarks import tables
from benchmarks.equality import base
from benchmarks.equality import runner
from gdp_grappler import environment
from gdp_grappler import progress

_LEGACY = ':tf_keras'
# Allowed difference of a program that does not always repeat its own numbers,
# as a share of the largest number of a tensor.
_BOUND = 1e-5
_TIMEOUT_S = 600.  # A program that takes longer hangs.
# Seconds for a placement. Slow machines have to place every program, too.
_PATIENCE_S = 300.
_TITLE = 'Equality'
_HEAD = ('program', 'ops placed', 'devices', 'variables moved', 'losses differ',
         'weights differ', 'unplaced runs differ', 'verdict')


def main(argv: Sequence[str] | None = None) -> int:
  """Prints the table or the list.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, 1 if the bound is broken, or 2 for bad input.
  """
  parser = tables.parser('equality', __doc__)
  parser.add_argument('programs', nargs='*', metavar='PROGRAM')
  parser.add_argument('--seed', type=int, default=0, help='of the placement')
  arguments = tables.parse(parser, argv)
  known = _names()
  unknown = sorted(set(arguments.programs) - set(known))
  if unknown:
    parser.error(f'no program is called {unknown[0]}; there are '
                 f'{", ".join(known)}')
  return tables.show(
      arguments, _TITLE,
      lambda: _table(arguments.programs or known, arguments.seed))


def _names() -> list[str]:
  """Returns the names of all programs."""
  return [
      name + suffix for name, program in base.PROGRAMS.items()
      for suffix, runs in (('', program.modern), (_LEGACY, program.legacy))
      if runs
  ]


def _row(name: str, option: dict[str, Any]) -> dict[str, Any]:
  """Runs a program in a process of its own, and returns its row."""
  program = name.removesuffix(_LEGACY)
  try:
    done = subprocess.run(
        [sys.executable, '-m', runner.__name__, program,
         json.dumps(option)], env=_environment(name.endswith(_LEGACY)),
        capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
  except subprocess.TimeoutExpired:
    return {'program': name, 'verdict': f'hangs: no end in {_TIMEOUT_S:g} s'}
  if done.returncode:
    lines = done.stderr.strip().splitlines() or ['killed']
    print(f'{name}:\n{done.stderr}', file=sys.stderr)
    return {'program': name, 'verdict': f'fails: {lines[-1]}'}
  row = {'program': name, **json.loads(done.stdout.strip().splitlines()[-1])}
  return {**row, 'verdict': _verdict(row, base.PROGRAMS[program])}


def _environment(legacy: bool) -> dict[str, str]:
  result = dict(os.environ)
  result.pop(environment.LEGACY_KERAS, None)
  return {**result, **({environment.LEGACY_KERAS: '1'} if legacy else {})}


def _verdict(row: dict[str, Any], program: base.Program) -> str:
  bound = _BOUND if row['noise'] else 0.
  # NaN is never within the bound.
  if not all(row[key] <= bound for key in ('losses', 'weights')):
    return 'differs'
  if program.stays == (row['devices'] > 1):
    return 'placed' if program.stays else 'not placed'
  return ''


def _cells(row: dict[str, Any]) -> list[str]:
  verdict = row['verdict'] or 'equal'
  if 'devices' not in row:
    return [row['program'], *['-'] * (len(_HEAD) - 2), verdict]
  counts = [row[key] for key in ('placed_ops', 'devices', 'moved_variables')]
  differences = [row[key] for key in ('losses', 'weights', 'noise')]
  return [
      row['program'], *map(str, counts),
      *(f'{d:.1g}' if d else '0' for d in differences), verdict
  ]


def _table(names: Sequence[str], seed: int) -> tables.Table:
  option = {
      'placer': 'random', 'keep_best': False, 'seed': seed,
      'time_budget_s': _PATIENCE_S
  }
  rows = progress.of_each('comparing', names, lambda name: _row(name, option))
  return tables.Table('placed at random over four logical CPU devices', _HEAD,
                      [_cells(row) for row in rows], rows,
                      fails=any(row['verdict'] for row in rows))


if __name__ == '__main__':
  sys.exit(main())
