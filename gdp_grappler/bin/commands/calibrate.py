"""`gdp calibrate`: measure the card of this machine."""

from __future__ import annotations

import argparse
import shlex

from gdp_grappler import cache
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.bin.commands import common

_DEFAULT_BUDGET_S = 26.  # The same as in `calibrator`, which is imported late.
_EPILOG = """\
The results are kept for this card, driver and TensorFlow. From then on the
cluster `local`, and so the option in a program, uses them. On other machines,
give the file of --output to gdp place and others as --calibration=FILE, or make
a cluster file: gdp cluster NAME --calibration=FILE --output=CLUSTER.json.
A calibration that ran out of time continues where it ended."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
  """Declares the subcommand."""
  parser = commands.add_parser(
      'calibrate',
      help='measure the card of this machine: launches, small transfers, '
      'kernels by size', epilog=_EPILOG,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument('--output', type=common.json_file, metavar='FILE.json',
                      help='write what was measured')
  parser.add_argument('--device', type=_gpu, default=0, metavar='GPU:N',
                      help='the card to measure (default GPU:0)')
  parser.add_argument(
      '--time_budget_s', type=common.seconds, default=_DEFAULT_BUDGET_S,
      help='most seconds that it may take, the loading of TensorFlow included '
      '(default %(default)g); the output lists what was left out')
  common.add_cache(parser, 'calibrations')
  parser.set_defaults(action=run)


def run(arguments: argparse.Namespace) -> int:
  """Measures the card, writes the calibration and prints a summary."""
  if arguments.output:
    files.check_writable(arguments.output)
  else:
    files.check_folder(cache.path(folder=arguments.cache_dir))
  progress.doing('calibrating')
  from gdp_grappler.evaluation.calibrating import calibrator
  result = calibrator.calibrate(
      calibrator.CalibrationOptions(arguments.time_budget_s, arguments.refresh,
                                    number=arguments.device,
                                    cache_dir=arguments.cache_dir), common.tell)
  if arguments.output:
    result.save(arguments.output)
  from gdp_grappler.reports import calibration_table
  common.say(calibration_table.text(result, arguments.quiet).rstrip())
  if arguments.output:
    common.say(f'Wrote {arguments.output}; gdp place and gdp simulate take it '
               f'by --calibration={shlex.quote(arguments.output)}.')
  return 0


def _gpu(text: str) -> int:
  kind, _, number = text.upper().rpartition(':')
  if kind not in ('', 'GPU', '/DEVICE:GPU') or not number.isdigit():
    raise argparse.ArgumentTypeError(f'it is {text!r}; give a card, such as '
                                     'GPU:0')
  return int(number)
