"""Makes the papers' tables and figures again, beside the published figures.

  make paper                                         # all of them
  python -m benchmarks.paper table2 --seconds=60 --seeds=3
  python -m benchmarks.paper hdp --tiny --seconds=2  # a first look, minutes

Parts: table1, table2, figure2, figure3 and figure4 of GDP, hdp (HDP's table)
and eight (SGDP's comparison). All step times are simulated. Each search has
--seconds of processor time, or of wall-clock time with --clock=wall. A search
that has found nothing by then may take one more step. Each part is written when
it is finished. The same command, run again, goes on where it stopped. All parts
together take hours.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import sys
from typing import Sequence

from gdp_grappler import environment

os.environ.update(environment.without_plugin())

import rich.console

from benchmarks.paper import cells
from benchmarks.paper import columns as columns_lib
from benchmarks.paper import page
from benchmarks.paper import parts as parts_lib
from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from placer_model.benchmark import clocks
from placer_model.benchmark import figures
from placer_model.benchmark import runner
from placer_model.benchmark import settings as settings_lib

# Options that change no result; given as --option=value.
_NO_RESULT = '--work_dir', '--out_dir', '--quiet'


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
  parser.add_argument(
      '--tasks', default='',
      help='only those of a part that contain one of these, '
      'separated by commas')
  parser.add_argument(
      '--tiny', action='store_true',
      help='small variants of the workloads, which say nothing '
      'about the full ones')
  parser.add_argument('--seed', type=int, default=0, help='the first one')
  parser.add_argument(
      '--seeds', type=int, default=1,
      help='how many; of several, the least and the most are shown')
  parser.add_argument(
      '--clock', choices=clocks.CLOCKS, default=clocks.PROCESSOR,
      help='what --seconds are of: the processor, or all that pass')
  parser.add_argument(
      '--may_round', action='store_true',
      help='let ops go to another kind of device even if they round '
      'differently there, as the papers did')
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
      word for word in given
      if word not in parts_lib.PARTS and not word.startswith(_NO_RESULT))
  return result


def _check(arguments: argparse.Namespace) -> None:
  """Raises a GdpError if the arguments are wrong."""
  for name in arguments.parts:
    if name not in parts_lib.PARTS:
      raise errors.GdpError(f'There is no part "{name}". Parts: '
                            f'{", ".join(parts_lib.PARTS)}.')
  if not 0 < arguments.seconds < float('inf'):
    raise errors.GdpError(f'A search cannot have {arguments.seconds:g} s. Give '
                          'more than 0.')
  if arguments.seeds < 1:
    raise errors.GdpError(f'--seeds={arguments.seeds}: give at least 1.')
  for name in arguments.parts:
    _part(name, arguments)


def _part(name: str, arguments: argparse.Namespace) -> columns_lib.Part:
  """Returns the part with the tasks of --tasks."""
  part = parts_lib.PARTS[name]
  wanted = [word for word in arguments.tasks.split(',') if word]
  chosen = [
      task for task in part.tasks
      if not wanted or any(word in task for word in wanted)
  ]
  if not chosen:
    raise errors.GdpError(f'--tasks={arguments.tasks} leaves none of '
                          f'{", ".join(part.tasks)}.')
  part = part.of(chosen)
  for column in part.columns:
    for task in filter(column.has, chosen):
      if column.batch and not column.batch.members(task):
        raise errors.GdpError(
            f'--tasks={arguments.tasks} leaves no graph of another family than '
            f'{task}, so nothing can be learned before it. Name more tasks.')
  return part.tiny() if arguments.tiny else part


def _made(name: str, arguments: argparse.Namespace,
          console: rich.console.Console) -> tuple[str, int]:
  """Returns the section of a part, and the number of its cells that failed."""
  part = _part(name, arguments)
  command = f'python -m benchmarks.paper {name} {arguments.options}'.strip()
  found = _found(part, arguments, console)
  failed = sum(len(figures.failures(task)) for tasks in found for task in tasks)
  return page.section(part, found, command, arguments.seconds), failed


def _found(part: columns_lib.Part, arguments: argparse.Namespace,
           console: rich.console.Console) -> page.Found:
  """Returns tasks with all cells of a part, by seed. Keeps finished cells."""
  return [
      cells.of(
          part,
          cells.Options(
              settings_lib.Settings(seed=arguments.seed + more,
                                    time_budget_s=arguments.seconds,
                                    may_round=arguments.may_round,
                                    clock=arguments.clock), arguments.work_dir,
              f'python -m benchmarks.paper {arguments.options}'.strip(),
              console)) for more in range(arguments.seeds)
  ]


def _head(arguments: argparse.Namespace) -> str:
  small = (' Workloads are **small variants** (@tiny), which say nothing about '
           'the full ones.' if arguments.tiny else '')
  return (
      '# A table of the papers, made anew\n\nAll step times are **simulated**, '
      'first in, first out. Published figures were measured on other machines, '
      'with another TensorFlow. A ratio A / B divides the step or the '
      'seconds of A by those of B: above 1, B is faster. '
      f'{_numbers(arguments.may_round)} '
      f'{_seeds(arguments)} {_clock(arguments.clock)}{small}')


def _seeds(arguments: argparse.Namespace) -> str:
  if arguments.seeds == 1:
    return f'One seed, {arguments.seed}; one placer on one task at a time.'
  return (f'{arguments.seeds} seeds from {arguments.seed}: geometric means, '
          'with the least and the most; one placer on one task at a time.')


def _clock(clock: str) -> str:
  if clock == clocks.WALL:
    return ('Seconds of searches are those that passed, so other work of the '
            'machine makes them longer.')
  return ('Seconds of searches are of the processor, on a machine that had '
          'other work: compare them within one page, by their ratios.')


def _numbers(may_round: bool) -> str:
  if may_round:
    return ('Ops might go to another kind of device even if they round '
            'differently there (--may_round).')
  return ('No op went to another kind of device, CPU or GPU, than TensorFlow '
          'chooses, if it rounds differently there. Published placements may '
          'have moved such ops.')


if __name__ == '__main__':
  sys.exit(main())
