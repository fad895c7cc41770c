"""Shows the results of `benchmarks.gpu` as tables in Markdown."""

from __future__ import annotations

import datetime
import pathlib
from typing import Any, Sequence

from benchmarks import one_card
from benchmarks.gpu import here
from benchmarks.gpu import parts as parts_lib
from gdp_grappler import errors
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.reports import tables

_LAST_LINES = 2  # Lines of a failed part's log that the page shows.


def text(setting: parts_lib.Setting, left_out: Sequence[str]) -> str:
  """Returns the whole page.

  Args:
    setting: The setting. The files are in its folder.
    left_out: Names of parts that are not finished.
  """
  found = _calibration(setting.out_dir)
  blocks = [_head(found, setting)]
  if found is not None:
    blocks.append(_figures(found))
    blocks.append(_kernels(found))
  blocks += [
      _steps(setting),
      _profiles(setting),
      _losses(setting),
      _one_card(setting),
      _streams(setting),
      _too_big(setting),
      _programs(setting)
  ]
  if left_out:
    blocks.append(f'Not finished: {", ".join(left_out)}. Run it again: it goes '
                  'on with these.')
  return '\n\n'.join(block for block in blocks if block) + '\n'


def _head(found: calibration_lib.Calibration | None,
          setting: parts_lib.Setting) -> str:
  dry = '' if setting.device == 'GPU' else (
      '; **a dry run over logical CPUs, which shows nothing of a card**')
  if found is None:
    return f'{_today()}: no calibration{dry}'
  driver = f', driver {found.driver}' if found.driver else ''
  return (f'{found.card}{driver}, TensorFlow {found.tensorflow}, {_today()}; '
          f'*measured*, one run{dry}')


def _today() -> str:
  return datetime.date.today().isoformat()


def _figures(found: calibration_lib.Calibration) -> str:
  rows = []
  for name, what in calibration_lib.FIGURES.items():
    value = found.figure(name)
    if value is not None:
      rows.append((what, _figure(name, value)))
  return _table('What the host pays', ('', 'measured'), rows)


def _figure(name: str, value: float) -> str:
  if name.endswith('_bytes_per_s'):
    return f'{value / 1e9:.3g} GB/s'
  if name.endswith('_s'):
    return f'{value * 1e6:.3g} us'
  return f'{value:g}'


def _kernels(found: calibration_lib.Calibration) -> str:
  rows = []
  for op_type, columns in found.columns.items():
    flops, io_bytes, seconds = columns[columns[:, 2].argsort()].T
    rows.append(
        (op_type, str(len(seconds)), f'{seconds[0] * 1e6:.1f}',
         f'{seconds[-1] * 1e6:.1f}', f'{(flops / seconds).max() / 1e12:.3g}',
         f'{(io_bytes / seconds).max() / 1e9:.0f}'))
  head = ('op type', 'sizes', 'smallest, us', 'largest, us', 'most TFLOP/s',
          'most GB/s')
  return _table('Kernels', head, rows)


def _steps(setting: parts_lib.Setting) -> str:
  measured = here.read(setting.out_dir / 'steps.json')
  predicted = here.read(setting.out_dir / 'predictions.json')
  rows: list[tuple[str, ...]] = []
  errors_before: list[float] = []
  errors_after: list[float] = []
  for name, step in measured.items():
    if 'error' in step:
      rows.append((name, step['error'], '', '', '', ''))
      continue
    real_s, guess = step['step_s'], predicted.get(name, {})
    cells = [name, f'{real_s * 1e3:.2f}', f'{step["alone_s"] * 1e3:.2f}']
    for key, many in (('before_s', errors_before), ('after_s', errors_after)):
      if key in guess:
        many.append(guess[key] / real_s - 1)
        cells.append(f'{guess[key] * 1e3:.2f} ({many[-1]:+.0%})')
      else:
        cells.append('')
    rows.append((*cells, f'{step["first_s"]:.0f}'))
  if errors_before:
    rows.append(('mean of absolute errors', '', '', _mean(errors_before),
                 _mean(errors_after), ''))
  head = ('model', 'measured, in a row, ms', 'alone, ms',
          'predicted by the data sheet, ms', 'by the calibration, ms',
          'first step, s')
  return _table('Steps on one device, without XLA', head, rows)


def _mean(many: Sequence[float]) -> str:
  return f'{sum(map(abs, many)) / len(many):.0%}' if many else ''


def _profiles(setting: parts_lib.Setting) -> str:
  rows = []
  for name in setting.profiled:
    path = setting.out_dir / f'profile_{name}.json'
    if not path.exists():
      continue
    try:
      device = profile_lib.load(path).devices[0]
    except errors.GdpError as error:
      rows.append((name, str(error), '', ''))
      continue
    rows.append((name, str(int(
        (device.executions > 0).sum())), f'{device.seconds.sum() * 1e3:.2f}',
                 f'{device.step_s * 1e3:.2f}'))
  head = ('graph', 'ops seen', 'kernels, ms', 'step of a session, ms')
  return _table('Profiles (other programs were on the card)', head, rows)


def _losses(setting: parts_lib.Setting) -> str:
  rows = []
  for name, found in here.read(setting.out_dir / 'losses.json').items():
    if 'error' in found:
      rows.append((name, found['error'], ''))
      continue
    verdict = 'equal to the last bit' if found['equal'] else 'differ'
    if not found['was_placed']:
      verdict = 'not placed'
    rows.append((name, verdict, found['said'].split('; predicted')[0]))
  head = ('model', 'losses', 'what was placed')
  return _table('Losses over CPU and two logical devices, deterministic ops',
                head, rows)


def _one_card(setting: parts_lib.Setting) -> str:
  found = here.read(setting.out_dir / 'one_card' / one_card.FILE)
  return _table('One card, in several ways', one_card.HEAD,
                one_card.cells(list(found.values())))


def _streams(setting: parts_lib.Setting) -> str:
  found = here.read(setting.out_dir / 'streams.json')
  names = list(dict.fromkeys(key.partition('.')[0] for key in found))
  ways = list(dict.fromkeys(key.partition('.')[2] for key in found))
  rows = [(name, *(_step(found.get(f'{name}.{way}', {})) for way in ways))
          for name in names]
  return _table('Steps of fit on a card that is cut, ms, without XLA',
                ('model', *(way.replace('_', ' ') for way in ways)), rows)


def _step(found: dict[str, Any]) -> str:
  if 'step_s' in found:
    return f'{1e3 * found["step_s"]:.2f}'
  return found.get('error', '-')


def _too_big(setting: parts_lib.Setting) -> str:
  rows = []
  for way, found in here.read(setting.out_dir / 'too_big.json').items():
    said = found.get('error') or f'trained, loss {found["losses"][-1]:.3g}'
    peaks = [f'{peak / 1e9:.2f}' for peak in found.get('peak_bytes', ())]
    rows.append((way, said, ' and '.join(peaks) or '-'))
  return _table('A model that is too big for one of two logical cards',
                ('option', 'result', 'peaks of the cards, GB'), rows)


def _programs(setting: parts_lib.Setting) -> str:
  rows = []
  for name in ('doctor', 'verify'):
    code = setting.out_dir / f'{name}.rc'
    if code.exists():
      log = (setting.out_dir / f'{name}.log').read_text().strip().splitlines()
      said = ' / '.join(line.strip() for line in log[-_LAST_LINES:])
      rows.append((f'gdp {name}', code.read_text().strip(), said))
  return _table('Programs', ('', 'exit code', 'last lines'), rows)


def _table(title: str, head: Sequence[str],
           rows: Sequence[Sequence[str]]) -> str:
  if not rows:
    return ''
  whole = [[cell.replace('\n', ' ') for cell in row] for row in [head, *rows]]
  return f'## {title}\n\n{tables.as_markdown(whole)}'


def _calibration(out_dir: pathlib.Path) -> calibration_lib.Calibration | None:
  try:
    return calibration_lib.load(out_dir / 'calibration.json')
  except errors.GdpError:
    return None
