"""Runs all measurements that need a GPU card.

  make gpu
  python -m benchmarks.gpu --out_dir=build/gpu

On the first card the program runs these parts:

* `gdp calibrate`, `gdp doctor` and `gdp verify`;
* steps of ten Keras models, and their predictions with and without the
  calibration;
* `gdp profile` of four graphs;
* losses of six models, with and without placement on the CPU and two logical
  GPUs;
* steps of four models on the card cut in two and in four;
* a model that one logical card of 5 GB cannot hold, with placement on two such
  cards and without;
* ten models in all ways of `benchmarks.one_card`, which takes several runs.

Each run takes under five minutes: a part that takes longer is stopped. Each
part writes a file in --out_dir, and a part whose file is complete is not run
again. So the next run begins with a part that was stopped or had no time. The
program ends with its tables as Markdown, for docs/results/gpu. They are also in
README.md of --out_dir.

With --device=CPU it is a dry run, in which logical CPUs stand for the card.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any, Sequence

from benchmarks import one_card_ways
from benchmarks import tables
from benchmarks.gpu import here
from benchmarks.gpu import page
from benchmarks.gpu import parts as parts_lib
from gdp_grappler import deadlines
from gdp_grappler import files

_BUDGET_S = 280.  # Seconds for all parts. A run is under five minutes.
# A part does not begin if fewer seconds are left.
_LEAST_S = 10.


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the parts that have no results yet.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 2 where there is no card.
  """
  arguments = _parser().parse_args(argv)
  if arguments.device == 'GPU' and not here.has_card():
    print(
        'benchmarks.gpu: error: TensorFlow sees no GPU here. Run it where '
        'there is one, with TensorFlow\'s CUDA build (gdp calibrate says '
        'what is missing); --device=CPU is a dry run.', file=sys.stderr)
    return 2
  setting = _setting(arguments)
  setting.out_dir.mkdir(parents=True, exist_ok=True)
  left_out = _run(setting, not arguments.without_programs)
  text = page.text(setting, left_out)
  files.write_atomically(setting.out_dir / 'README.md', text)
  print(text)
  return 0


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
      'benchmarks.gpu', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--out_dir', type=pathlib.Path,
                      default=pathlib.Path('build/gpu'))
  parser.add_argument('--device', choices=('GPU', 'CPU'), default='GPU')
  parser.add_argument('--time_budget_s', type=float, default=_BUDGET_S,
                      help='parts are stopped then (default %(default)g)')
  parser.add_argument('--models', type=tables.names, default=parts_lib.MODELS,
                      metavar='MODULE:FUNCTION,...')
  parser.add_argument('--placed', type=tables.names, default=parts_lib.PLACED,
                      metavar='MODULE:FUNCTION,...')
  parser.add_argument('--profiled', type=tables.names,
                      default=parts_lib.PROFILED, metavar='FUNCTION,...')
  parser.add_argument('--compared', type=tables.names, default=(),
                      metavar='MODULE:FUNCTION,...')
  parser.add_argument('--ways', type=tables.names,
                      default=tuple(one_card_ways.WAYS), metavar='WAY,...')
  parser.add_argument('--steps', type=int, default=20)
  parser.add_argument('--calibrate_s', type=float, default=28.)
  parser.add_argument(
      '--without_programs', action='store_true',
      help='run neither gdp doctor, gdp verify nor the model that no card holds'
  )
  return parser


def _setting(arguments: argparse.Namespace) -> parts_lib.Setting:
  return parts_lib.Setting(arguments.device, arguments.out_dir,
                           arguments.models, arguments.placed,
                           arguments.profiled, arguments.compared,
                           arguments.ways, arguments.steps,
                           arguments.calibrate_s,
                           deadline=deadlines.within(arguments.time_budget_s))


def _run(setting: parts_lib.Setting, programs: bool) -> list[str]:
  """Runs parts. A part that is timed runs alone on the card.

  Returns:
    Names of the parts that are not finished.
  """
  left_out: list[str] = []
  # A part is made when it begins, because its time limit is the time left.
  for make in (parts_lib.calibrate, parts_lib.steps, parts_lib.predictions):
    _alone(make(setting), setting, left_out)
  beside = [parts_lib.losses(setting)]
  if programs:
    beside += [parts_lib.program(name) for name in ('doctor', 'verify')]
  profiles = [
      parts_lib.profile(setting, name) for name in setting.profiled
      if (setting.out_dir / 'graphs' / f'{name}.pb').exists()
  ]
  running = _started(beside, setting, left_out)
  for part in profiles:
    _alone(part, setting, left_out)
  _finished(running, setting, left_out)
  if setting.device == 'GPU':
    _alone(parts_lib.streams(setting), setting, left_out)
  if programs:  # This part needs most of a card.
    _alone(parts_lib.too_big(setting), setting, left_out)
  _alone(parts_lib.one_card(setting), setting, left_out)
  return left_out


def _alone(part: parts_lib.Part, setting: parts_lib.Setting,
           left_out: list[str]) -> None:
  _finished(_started([part], setting, left_out), setting, left_out)


def _started(parts: Sequence[parts_lib.Part], setting: parts_lib.Setting,
             left_out: list[str]) -> list[tuple[parts_lib.Part, Any, float]]:
  running = []
  for part in parts:
    if part.is_done(setting.out_dir):
      _say(f'{part.name}: done before')
    elif setting.deadline.remaining_s < _LEAST_S:
      left_out.append(part.name)
    else:
      _say(f'{part.name}: running')
      running.append((part, parts_lib.start(part, setting), time.monotonic()))
  return running


def _finished(running: Sequence[tuple[parts_lib.Part, Any, float]],
              setting: parts_lib.Setting, left_out: list[str]) -> None:
  for part, process, begin in running:
    code = parts_lib.finish(part, process, setting)
    if not part.always and not part.is_done(setting.out_dir):
      left_out.append(f'{part.name} (exit code {code}, see {part.name}.log)')
    _say(f'{part.name}: exit code {code}, {time.monotonic() - begin:.0f} s')


def _say(line: str) -> None:
  print(f'gpu: {line}', file=sys.stderr, flush=True)


if __name__ == '__main__':
  sys.exit(main())
