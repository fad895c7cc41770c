"""Common parts of the command lines of the trainer's programs."""

from __future__ import annotations

import math
import shlex
import sys
import textwrap
import types
from typing import Callable, Sequence

from absl import app
from absl import flags
from absl import logging

import gdp_grappler
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler import spelling
from gdp_grappler.bin import starting
from gdp_grappler.graph import assumptions
from gdp_grappler.problems import help_texts
from gdp_grappler.reports import progress_line

_MOST_SEED = 2**32 - 1  # Limit of NumPy and Keras.

# Flags of all programs.
LOCAL_WORKERS = flags.DEFINE_integer(
    'local_workers', 0, 'Start this many TensorFlow servers on this machine, '
    'each on its own cores, and measure on them.', lower_bound=0)
SEED = flags.DEFINE_integer('seed', 0, help_texts.sentence(help_texts.SEED),
                            lower_bound=0, upper_bound=_MOST_SEED)
BATCH_SIZE = flags.DEFINE_integer('batch_size', assumptions.DEFAULT_BATCH_SIZE,
                                  help_texts.sentence(help_texts.BATCH_SIZE),
                                  lower_bound=1)
TRIP_COUNT = flags.DEFINE_integer('trip_count', assumptions.DEFAULT_TRIP_COUNT,
                                  help_texts.sentence(help_texts.TRIP_COUNT),
                                  lower_bound=1)
PROFILE = flags.DEFINE_string('profile', None,
                              help_texts.sentence(help_texts.PROFILE))
MAX_MEMORY = flags.DEFINE_string('max_memory', '',
                                 help_texts.sentence(help_texts.MAX_MEMORY))
MAY_ROUND = flags.DEFINE_boolean('may_round', False,
                                 help_texts.sentence(help_texts.MAY_ROUND))
RAY = flags.DEFINE_string(
    'ray', None, "Run on the machines of a Ray cluster: 'auto' for the one "
    "that this machine is part of, HOST:PORT of its head, or 'local' to start "
    'one on this machine. Results are the same.')
QUIET = flags.DEFINE_boolean(
    'quiet', False, 'Do not show on standard error what is being done.')
# Flags that a program may lack, although importing this module defines them.
_COMMON = (LOCAL_WORKERS, SEED, BATCH_SIZE, TRIP_COUNT, PROFILE, MAX_MEMORY,
           MAY_ROUND, RAY)


class CommandLine:
  """The flags, the help and the error lines of a program.

  Attributes:
    program: Name of the program.
    flags: Flags of the program, in the order of the help.
  """

  def __init__(self, program: str, text: str, own: Sequence[flags.FlagHolder],
               missing: Callable[[], Sequence[flags.FlagHolder]]) -> None:
    """Describes a program.

    Args:
      program: Name of the program.
      text: Description of the program for the help.
      own: Flags of the program. All programs also have --quiet.
      missing: Returns the required flags that were not given, after parsing.
    """
    self.program, self.flags = program, (*own, QUIET)
    self._text, self._missing = text, missing

  def run(self, main: Callable[[list[str]], int], interrupted: str) -> None:
    """Runs the program, as its console script does, and ends the process.

    Args:
      main: Takes the arguments after the flags, and returns the exit code.
      interrupted: Line for Ctrl-C before `main` handles it. The exit code is
        130.
    """
    starting.prepare_streams()
    starting.end_as_interrupted()
    try:
      app.run(main, flags_parser=self.parse)
    except KeyboardInterrupt:
      self.say(f'interrupted; {interrupted}')
      sys.exit(130)
    finally:
      starting.flush(sys.stderr)

  def parse(self, argv: list[str]) -> list[str]:
    """Parses flags for `app.run`. A bad flag is one line and exit code 2."""
    if {'--help', '-help', '-h'} & set(argv[1:]):
      print_line(self._help())
      sys.exit(0)
    if '--version' in argv[1:]:
      print_line(f'gdp-grappler {gdp_grappler.__version__}')
      sys.exit(0)
    try:
      rest = flags.FLAGS(argv)
    except flags.Error as error:
      sys.exit(
          self.fail(f'{errors.first_line(error)} (--help lists all flags)'))
    if len(rest) > 1:
      sys.exit(
          self.fail(f'unexpected argument "{rest[1]}"; all input comes by '
                    'flags (--help lists them).'))
    own = {flag.name for flag in self.flags}
    for flag in _COMMON:
      if flag.name not in own and flags.FLAGS[flag.name].present:
        sys.exit(
            self.fail(f'--{flag.name} has no effect on {self.program}. Leave '
                      'it out (--help lists all flags).'))
    missing = [f'--{flag.name}' for flag in self._missing()]
    if missing:
      sys.exit(
          self.fail(f'{" and ".join(missing)} must be given (--help lists '
                    'all flags).'))
    for name in (flag.name for flag in self.flags):
      value = flags.FLAGS[name].value
      # absl's bounds accept NaN.
      if isinstance(value, float) and not math.isfinite(value):
        sys.exit(self.fail(f'--{name}={value}: give a finite number.'))
    return rest

  def typed(self) -> str:
    """Returns a command with the flags that the user gave."""
    given = [
        f'--{flag.name}={_text(flag.value)}'
        for flag in (flags.FLAGS[own.name] for own in self.flags)
        if flag.present
    ]
    return shlex.join([self.program, *given])

  def exit_code(self, first: str, work: Callable[[], int]) -> int:
    """Runs the work, and returns its exit code; 2 after a GdpError or OSError.

    Args:
      first: Progress line that is shown before anything is imported.
      work: The work. It reports its progress by `progress`.
    """
    try:
      own = [flag.name for flag in self.flags]
      with (spelling.as_flags(self.program, own),
            progress_line.shown(self.program, QUIET.value)):
        progress.doing(first)
        code = work()
      starting.flush(sys.stdout, BrokenPipeError)
      return code
    except errors.GdpError as error:
      return self.fail(str(error))
    except OSError as error:
      return self.fail(
          f'{error.filename or "input or output"}: {error.strerror}.')

  def fail(self, message: str) -> int:
    """Prints an error in one line; returns the exit code for bad input."""
    self.say(f'error: {message}')
    return 2

  def say(self, message: str) -> None:
    """Prints a line to standard error."""
    progress.say(f'{self.program}: {message}')

  def _help(self) -> str:
    """Help of our flags. absl lists those of the script, which has none."""
    lines = [self._text.strip(), '', '--version: Print it and end.']
    for holder in self.flags:
      flag = flags.FLAGS[holder.name]
      default = '' if flag.default is None else f' (default {flag.default})'
      lines += textwrap.wrap(f'--{flag.name}: {flag.help}{default}', 78,
                             subsequent_indent='    ')
    return '\n'.join(lines)


def print_line(text: str) -> None:
  """Prints a text. The reader, such as `head`, may end before the text."""
  try:
    print(text, flush=True)
  except BrokenPipeError:
    starting.drop(sys.stdout)


def _text(value: object) -> str:
  return str(value).lower() if isinstance(value, bool) else str(value)


def make_repeatable(tf: types.ModuleType) -> None:
  """Makes TensorFlow give the same training again for the same --seed.

  Args:
    tf: The module `tensorflow`, which few commands import.
  """
  logging.set_verbosity(logging.WARNING)
  tf.keras.utils.set_random_seed(SEED.value)
  tf.config.experimental.enable_op_determinism()
  # Optimizing a graph of the trainer takes longer than it saves.
  tf.config.optimizer.set_experimental_options({'disable_meta_optimizer': True})


def check_ray() -> None:
  """Raises an error if --ray is wrong, as far as that shows at once."""
  if RAY.value is not None:
    from gdp_grappler.processes import ray_machines
    ray_machines.check(RAY.value)
