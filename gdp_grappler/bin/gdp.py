"""`gdp`: place a graph, price and explain plans, profile ops, and so on."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from typing import Any, Mapping, Sequence

import gdp_grappler
from gdp_grappler import environment
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler import spelling
from gdp_grappler import suggestions
from gdp_grappler.bin import starting
from gdp_grappler.bin.commands import calibrate
from gdp_grappler.bin.commands import cluster
from gdp_grappler.bin.commands import completion
from gdp_grappler.bin.commands import diff
from gdp_grappler.bin.commands import doctor
from gdp_grappler.bin.commands import explain
from gdp_grappler.bin.commands import glossary
from gdp_grappler.bin.commands import place
from gdp_grappler.bin.commands import profile
from gdp_grappler.bin.commands import report
from gdp_grappler.bin.commands import show
from gdp_grappler.bin.commands import simulate
from gdp_grappler.bin.commands import verify
from gdp_grappler.placers.policy import eager_thread
from gdp_grappler.reports import progress_line

_COMMANDS = (place, show, simulate, explain, diff, report, profile, calibrate,
             cluster, verify, doctor, glossary, completion)


def main() -> int:
  """Runs `gdp` as a console program, and returns its exit code."""
  # The plugin must not place graphs of this program. The variable is not set at
  # import, because child processes of an importing program would inherit it.
  os.environ.update(environment.without_plugin())
  starting.prepare_streams()
  try:
    code = run()
    if code == starting.INTERRUPTED and eager_thread.is_busy():
      # Python would wait for the job: for seconds, or for ever if an import
      # that was interrupted still holds a lock that the job needs.
      starting.flush(sys.stdout)
      starting.flush(sys.stderr)
      os._exit(code)
    return code
  finally:
    starting.flush(sys.stderr)


def run(argv: Sequence[str] | None = None) -> int:
  """Runs one subcommand.

  Args:
    argv: Arguments after the program's name; `sys.argv` if None.

  Returns:
    0, or 1 if `doctor` or `verify` found something wrong, 2 for bad input, or
    130 after Ctrl-C.
  """
  known, commands = _parsers()
  typed = list(sys.argv[1:] if argv is None else argv)
  if not typed:
    known.print_help()
    return 0
  _check_words(known, commands, typed)
  arguments = known.parse_args(typed)
  try:
    with spelling.as_flags(), progress_line.shown('gdp', arguments.quiet):
      code = arguments.action(arguments)
    starting.flush(sys.stdout, BrokenPipeError)
    return code
  except BrokenPipeError:
    # The reader of the output, such as `head`, has closed the pipe.
    starting.drop(sys.stdout)
    return 0
  except errors.GdpError as error:
    progress.say(f'gdp: error: {error}')
    return 2
  except OSError as error:
    starting.flush(sys.stdout)  # Else Python would fail again at exit.
    where = error.filename or 'input or output'
    progress.say(f'gdp: error: {where}: {error.strerror or error}.')
    return 2
  except KeyboardInterrupt:
    progress.say('gdp: interrupted')
    return starting.INTERRUPTED


def _check_words(known: argparse.ArgumentParser,
                 commands: Mapping[str, argparse.ArgumentParser],
                 typed: Sequence[str]) -> None:
  """Ends the program if a word is misspelt, and says what was meant."""
  command = next((word for word in typed if not word.startswith('-')), '')
  if not command:
    return
  if command not in commands:
    known.error(f'there is no command "{command}".'
                f'{suggestions.did_you_mean(command, commands)} There are '
                f'{", ".join(commands)}.')
  flags = [f for f in commands[command]._option_string_actions if f[:2] == '--']
  for word in itertools.takewhile(lambda word: word != '--', typed):
    flag = word.partition('=')[0]
    # The beginning of a flag is valid, too.
    if flag[:2] == '--' and not any(f.startswith(flag) for f in flags):
      near = suggestions.did_you_mean(flag, flags)
      known.exit(
          2, f'gdp: error: gdp {command} has no flag {flag}.{near} All: gdp '
          f'{command} --help.\n')


def parser() -> argparse.ArgumentParser:
  """Returns the parser of `gdp`, with all commands."""
  return _parsers()[0]


def _parsers(
) -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
  """Returns the parser of `gdp`, and the parsers of commands by name."""
  result = argparse.ArgumentParser(
      prog='gdp', description='Device placement for TensorFlow graphs.')
  _add_switches(result, False)
  result.set_defaults(program=result)
  commands = result.add_subparsers(required=True, metavar='COMMAND')
  for command in _COMMANDS:
    command.add(commands)
  for subcommand in commands.choices.values():
    # A switch that is missing after the command keeps its value from before.
    _add_switches(subcommand, argparse.SUPPRESS)
  return result, commands.choices


def _add_switches(parser: argparse.ArgumentParser, default: Any) -> None:
  """Adds the switches that may stand before or after the command."""
  parser.add_argument(
      '--quiet', action='store_true', default=default,
      help='print only the result, without progress and without the commands '
      'that may come next')
  parser.add_argument('--version', action='version',
                      version=f'gdp-grappler {gdp_grappler.__version__}')


if __name__ == '__main__':
  sys.exit(main())
