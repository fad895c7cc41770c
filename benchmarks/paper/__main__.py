"""Makes the papers' tables and figures anew, simulated, beside what was said.

  make paper                                         # all of them
  python -m benchmarks.paper table2 --seconds=60
  python -m benchmarks.paper hdp --tiny --seconds=2  # a first look, minutes

What there is: table1, table2, figure2, figure3 and figure4 of GDP, hdp (HDP's
table), eight (SGDP's comparison) and seconds (every rival with the same
seconds, from 1 to 300). Each search has --seconds; what begins with nothing may
take one step more. A part is written when it is finished; run again, all goes
on where it stopped. All of it takes a day.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import sys
from typing import Any, Sequence

from gdp_grappler import environment

os.environ.update(environment.without_plugin())

import rich.console

from benchmarks.paper import page
from benchmarks.paper import parts as parts_lib
from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from placer_model.benchmark import runner
from placer_model.benchmark import settings as settings_lib

_SECONDS = (1., 3., 10., 30., 60., 300.)
_CLUSTER = '@'


def main(argv: Sequence[str] | None = None) -> int:
  """Runs the program.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, 1 if a cell failed, 2 after a line about bad input, 130 after Ctrl-C.
  """
  arguments = _parse(argv)
  console = rich.console.Console(stderr=True, quiet=arguments.quiet)
  try:
    extras.require('benchmarks.paper', *extras.BENCH)
    _check(arguments)
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    arguments.out_dir.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in arguments.parts:
      text, failures = _made(name, arguments, console)
      files.write_atomically(arguments.out_dir / f'{name}.md',
                             f'{_head(arguments)}\n\n{text}\n')
      print(f'{text}\n')
      failed += failures
    return int(failed > 0)
  except errors.GdpError as error:
    print(f'paper: error: {error}', file=sys.stderr)
    return 2
  except OSError as error:
    print(
        f'paper: error: {error.filename} cannot be written: '
        f'{error.strerror}. Choose another folder.', file=sys.stderr)
    return 2
  except (runner.Interrupted, KeyboardInterrupt):
    print(
        'paper: interrupted; finished cells are kept. Run the same command '
        'again to go on from there.', file=sys.stderr)
    return 130


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
  parser = argparse.ArgumentParser(
      prog='paper', description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('parts', nargs='*', metavar='PART',
                      default=list(parts_lib.PARTS))
  parser.add_argument('--seconds', type=float, default=60.,
                      help='of each search')
  parser.add_argument('--curve', default=','.join(f'{s:g}' for s in _SECONDS),
                      help='seconds of the part of that name')
  parser.add_argument(
      '--tasks', default='',
      help='only those of a part that contain one of these, '
      'separated by commas')
  parser.add_argument(
      '--tiny', action='store_true',
      help='small variants of the workloads, which say nothing '
      'about the full ones')
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument(
      '--may_round', action='store_true',
      help='let ops go where they are rounded otherwise, as the papers did')
  parser.add_argument('--work_dir', type=pathlib.Path,
                      default=pathlib.Path('build/paper'),
                      help='keeps what is finished')
  parser.add_argument('--out_dir', type=pathlib.Path,
                      default=pathlib.Path('docs/results/paper'),
                      help='a page per part')
  parser.add_argument('--quiet', action='store_true', help='no progress')
  given = sys.argv[1:] if argv is None else list(argv)
  result = parser.parse_args(given)
  result.options = shlex.join(
      word for word in given if word not in parts_lib.PARTS)
  return result


def _check(arguments: argparse.Namespace) -> None:
  """Raises an error for what can be told from the arguments alone."""
  for name in arguments.parts:
    if name not in parts_lib.PARTS:
      raise errors.GdpError(f'There is no part "{name}". Parts: '
                            f'{", ".join(parts_lib.PARTS)}.')
  for seconds in (arguments.seconds, *_curve_s(arguments)):
    if not 0 < seconds < float('inf'):
      raise errors.GdpError(f'A search cannot have {seconds:g} s. Give more '
                            'than 0.')
  for name in arguments.parts:
    _tasks(parts_lib.PARTS[name], arguments)


def _curve_s(arguments: argparse.Namespace) -> list[float]:
  try:
    return sorted({float(text) for text in arguments.curve.split(',')})
  except ValueError as error:
    raise errors.GdpError(f'--curve={arguments.curve}: give seconds, separated '
                          'by commas.') from error


def _tasks(part: parts_lib.Part, arguments: argparse.Namespace) -> list[str]:
  """Those of a part that are wanted."""
  wanted = [word for word in arguments.tasks.split(',') if word]
  chosen = [
      task for task in part.tasks
      if not wanted or any(word in task for word in wanted)
  ]
  if not chosen:
    raise errors.GdpError(f'--tasks={arguments.tasks} leaves none of '
                          f'{", ".join(part.tasks)}.')
  if not arguments.tiny:
    return chosen
  return [
      f'{_CLUSTER}tiny{_CLUSTER}'.join(task.split(_CLUSTER)) for task in chosen
  ]


def _made(name: str, arguments: argparse.Namespace,
          console: rich.console.Console) -> tuple[str, int]:
  """A part's section, and how many of its cells failed."""
  part = parts_lib.PARTS[name]
  command = f'python -m benchmarks.paper {name} {arguments.options}'.strip()
  if not part.curve:
    seconds = arguments.seconds if part.limited else None
    results = _run(part, seconds, arguments, console)
    return (page.section(part, results['tasks'], command,
                         seconds), len(runner.failures(results)))
  every = {
      seconds: _run(part, seconds, arguments, console)
      for seconds in _curve_s(arguments)
  }
  tasks = {seconds: results['tasks'] for seconds, results in every.items()}
  from placer_model.benchmark import pictures
  picture = arguments.out_dir / f'{name}.png'
  pictures.save(picture, page.drawn(part, tasks))
  return (page.curve_section(part, tasks, command, picture.name),
          sum(len(runner.failures(results)) for results in every.values()))


def _run(part: parts_lib.Part, budget_s: float | None,
         arguments: argparse.Namespace,
         console: rich.console.Console) -> dict[str, Any]:
  """Results of all cells of a part, those that are kept included."""
  return runner.run(
      runner.Options(
          tasks=','.join(_tasks(part, arguments)),
          placers=','.join(part.placers), out_dir=arguments.work_dir,
          settings=settings_lib.Settings(seed=arguments.seed,
                                         time_budget_s=budget_s,
                                         may_round=arguments.may_round),
          command=f'python -m benchmarks.paper {arguments.options}'.strip()),
      console)


def _head(arguments: argparse.Namespace) -> str:
  small = (' Workloads are **small variants** (@tiny), which say nothing about '
           'the full ones.' if arguments.tiny else '')
  return (
      '# A table of the papers, made anew\n\nAll step times are **simulated**, '
      'first in, first out. What was published was measured, on other machines '
      'and with another TensorFlow. A ratio is above 1 where the placer below '
      f'the line is better. {_numbers(arguments.may_round)} One seed, '
      f'{arguments.seed}; one cell at a time.{small}')


def _numbers(may_round: bool) -> str:
  if may_round:
    return 'Ops might go where they are rounded otherwise (--may_round).'
  return ('No op went to another kind of device than TensorFlow would put it '
          'on if it were rounded otherwise there; those published might.')


if __name__ == '__main__':
  sys.exit(main())
