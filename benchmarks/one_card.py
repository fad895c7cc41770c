r"""Steps of ten models on one card, in several ways.

Run it from the repository, on a machine with nothing else to do:

  python -m benchmarks.one_card [--models=MODULE:FUNCTION,...] [--ways=WAY,...]
      [--json] [--page=FILE] [--out_dir=build/one_card]

A fresh process with a time limit trains each model in each way, one process at
a time. The ways are: Keras' default (XLA), without XLA, with XLA clusters
inside the device, placed on two and on four streams of the card (`split`), and
as the option chooses. For each way the program prints the time of a step, the
time of the first step (compiling and planning included), the memory, and the
way that the last steps had. Results are kept in --out_dir and are not measured
again.

Without a GPU, the ways that cut a card are left out. The other ways run on the
CPU, by default with small models. Such results say nothing about a card.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Sequence

from benchmarks import one_card_ways
from benchmarks import tables
from benchmarks.gpu import here
from gdp_grappler import deadlines
from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress

_KERAS, _OURS = 'benchmarks.keras_models', 'benchmarks.gpu.models'
MODELS = (*(f'{_KERAS}:{name}' for name in ('cnn', 'mlp', 'transformer',
                                            'experts', 'two_towers', 'unet')),
          *(f'{_OURS}:{name}'
            for name in ('recommender', 'mixture', 'resnet50', 'nasnet')))
_ON_CPU = (f'{_OURS}:small_recommender', f'{_OURS}:small_mixture')
_TITLE = 'One card'
HEAD = ('model', 'way', 'step', 'over Keras', 'first step', 'memory', 'chosen')
FILE = 'one_card.json'
_NO_CARD = 'needs a GPU, and TensorFlow sees none here'
# A way that takes longer than its limit is tried again by a later run, unless
# the limit was at least this.
_FAIR_LIMIT_S = 60.
_STEPS = 20  # Timed steps of a way.
_STEPS_ON_CPU = 3  # Timed steps of a way in a dry run without a GPU.
# Keys of a row of --json.
_KEYS = ('model', 'way', 'step_s', 'first_s', 'chosen', 'peak_bytes', 'error')
_Row = dict[str, Any]


def _table(arguments: argparse.Namespace) -> tables.Table:
  """Measures the models, and returns the table.

  Raises:
    GdpError: a way has an unknown name, or the plugin is not loaded.
  """
  from benchmarks import plugin
  unknown = [way for way in arguments.ways if way not in one_card_ways.WAYS]
  if unknown:
    raise errors.GdpError(f'--ways has "{unknown[0]}"; valid are '
                          f'{", ".join(one_card_ways.WAYS)}.')
  plugin.require()
  rows = _measured(arguments)
  where = 'one GPU' if any(row.get('peak_bytes') for row in rows) else (
      'a CPU, which shows nothing of a card')
  return tables.Table(f'Steps on {where}, measured', HEAD, cells(rows),
                      [{key: row.get(key) for key in _KEYS} for row in rows])


def _measured(arguments: argparse.Namespace) -> list[_Row]:
  """Returns the rows of all models in all ways that were measured in time."""
  has_card = here.has_card()
  names = arguments.models or models(has_card)
  deadline = deadlines.within(arguments.time_budget_s)
  arguments.out_dir.mkdir(parents=True, exist_ok=True)
  path = arguments.out_dir / FILE
  known = here.read(path)
  # All ways of a model run one after the other, so that they are comparable.
  pairs = [(model, way) for model in names for way in arguments.ways]

  def row(pair: tuple[str, str]) -> _Row:
    return known.get(_key(*pair)) or _new(*pair)

  def _new(model: str, way: str) -> _Row:
    head = {'model': here.short(model), 'way': way}
    if one_card_ways.WAYS[way].needs_card and not has_card:
      return {**head, 'error': _NO_CARD}
    if deadline.passed:
      return {**head, 'error': 'no time was left'}
    try:
      found = {**head, **_run(model, way, has_card, arguments.limit_s)}
    except subprocess.TimeoutExpired:
      found = {**head, 'error': f'not done after {arguments.limit_s:g} s'}
      if arguments.limit_s < _FAIR_LIMIT_S:
        return found  # Not kept, because a run with more time may measure it.
    known[_key(model, way)] = found
    here.write(path, known)
    return found

  return progress.of_each('training', pairs, row,
                          lambda pair: f'{here.short(pair[0])}, {pair[1]}')


def _key(model: str, way: str) -> str:
  return f'{here.short(model)}.{way}'


def models(has_card: bool) -> tuple[str, ...]:
  """Returns the models that run by default."""
  return MODELS if has_card else _ON_CPU


def keys(names: Sequence[str], ways: Sequence[str]) -> tuple[str, ...]:
  """Returns the keys of the file of results when all is measured.

  Args:
    names: Names of models.
    ways: Ways in which the models run.
  """
  return tuple(_key(m, way) for m in names for way in ways)


def _run(model: str, way: str, has_card: bool, limit_s: float) -> _Row:
  """Returns the result of a process, or a line that says why it failed.

  Raises:
    TimeoutExpired: the process took longer than the limit.
  """
  steps = _STEPS if has_card else _STEPS_ON_CPU
  variables = {**os.environ, **one_card_ways.WAYS[way].variables}
  variables.setdefault(environment.LOG_LEVEL, environment.QUIETEST)
  variables.pop(environment.DISABLE, None)
  variables.pop(environment.PLACEMENT, None)
  command = [
      sys.executable, '-m', 'benchmarks.one_card_worker', model, way,
      str(steps)
  ]
  done = subprocess.run(command, env=variables, text=True, timeout=limit_s,
                        capture_output=True, check=False)
  if done.returncode:
    last = (done.stderr.strip().splitlines() or ['killed'])[-1]
    return {'error': last[:300]}
  return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def cells(rows: Sequence[_Row]) -> list[list[str]]:
  """Returns the cells of the table.

  Args:
    rows: Rows of the file of results.
  """
  stock_s = {
      row['model']: row['step_s'] for row in rows
      if row['way'] == 'xla' and 'step_s' in row
  }
  return [_cells(row, stock_s.get(row['model'])) for row in rows]


def _cells(row: _Row, stock_s: float | None) -> list[str]:
  what = one_card_ways.WAYS[row['way']].what
  if 'error' in row:
    return [row['model'], what, '-', '-', '-', '-', row['error']]
  peak = row.get('peak_bytes')
  return [
      row['model'], what,
      tables.milliseconds(row['step_s']),
      f'{stock_s / row["step_s"]:.2f}x' if stock_s else '-',
      f'{row["first_s"]:.1f} s', f'{peak / 1e9:.2f} GB' if peak else '-',
      row['chosen']
  ]


main = tables.program(
    'one_card', __doc__, _TITLE, _table,
    tables.option('--models', type=tables.names, metavar='MODULE:FUNCTION,...'),
    tables.option('--ways', type=tables.names,
                  default=tuple(one_card_ways.WAYS), metavar='WAY,...',
                  help=f'of {", ".join(one_card_ways.WAYS)}'),
    tables.option('--out_dir', type=pathlib.Path,
                  default=pathlib.Path('build/one_card')),
    tables.option('--limit_s', type=float, default=180.,
                  help='of each process (default %(default)g)'),
    tables.option('--time_budget_s', type=float, default=None,
                  help='no process begins later (default: no limit)'))

if __name__ == '__main__':
  sys.exit(main())
