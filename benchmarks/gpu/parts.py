"""The parts of `benchmarks.gpu`: programs, and the files that they write."""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any, Sequence

from benchmarks import one_card as one_card_lib
from benchmarks import one_card_ways
from benchmarks.gpu import here
from benchmarks.gpu import streams as streams_lib
from gdp_grappler import deadlines
from gdp_grappler import environment

_KERAS = 'benchmarks.keras_models'
_OURS = 'benchmarks.gpu.models'
# Models whose steps are predicted and measured, the fast models first.
MODELS = (f'{_KERAS}:cnn', f'{_KERAS}:mlp', f'{_KERAS}:lstm',
          f'{_KERAS}:transformer', f'{_KERAS}:experts', f'{_KERAS}:two_towers',
          f'{_OURS}:resnet50', f'{_OURS}:mobilenet', f'{_OURS}:vgg16',
          f'{_KERAS}:unet')
# Models whose losses are compared.
PLACED = tuple(f'{_KERAS}:{name}' for name in ('cnn', 'lstm', 'transformer',
                                               'mlp', 'experts', 'two_towers'))
# Models whose steps are measured on logical GPUs of one card.
SPLIT = tuple(
    f'{_KERAS}:{name}' for name in ('cnn', 'experts', 'two_towers', 'mlp'))
# Models whose ops are profiled.
PROFILED = ('cnn', 'lstm', 'mlp', 'transformer')
_LONGEST_S = 280.  # Seconds after which a part is stopped at the latest.


@dataclasses.dataclass(frozen=True)
class Setting:
  """The settings of all parts.

  Attributes:
    device: 'GPU', or 'CPU' for a dry run.
    out_dir: Folder of the results.
    models: Models whose steps are measured.
    placed: Models whose losses are compared.
    profiled: Models, of `models`, whose graphs are profiled.
    compared: Models that run in several ways. () means the models of
      `one_card`.
    ways: The ways of these models; see `one_card_ways`.
    steps: Number of steps that are measured in a row.
    calibrate_s: Time limit of the calibration, in seconds.
    profile_s: Time limit of the profile of a graph, in seconds.
    models_s: Time limit of all steps, and again of all losses, in seconds.
    split: Models whose steps are measured on logical GPUs of one card.
    deadline: Moment at which all parts are stopped.
  """

  device: str
  out_dir: pathlib.Path
  models: tuple[str, ...] = MODELS
  placed: tuple[str, ...] = PLACED
  profiled: tuple[str, ...] = PROFILED
  compared: tuple[str, ...] = ()
  ways: tuple[str, ...] = tuple(one_card_ways.WAYS)
  steps: int = 20
  calibrate_s: float = 28.
  profile_s: float = 8.
  models_s: float = 110.
  split: tuple[str, ...] = SPLIT
  deadline: deadlines.Deadline = deadlines.NEVER


@dataclasses.dataclass(frozen=True)
class Part:
  """A program, and the file that shows that the program has run.

  Attributes:
    name: Name of the log.
    command: Arguments of the Python interpreter.
    makes: Name of the file that the program writes; '' for its output.
    wants: Keys that the file must have; () for any file.
    always: Whether the program runs even if it has run before.
  """

  name: str
  command: tuple[str, ...]
  makes: str = ''
  wants: tuple[str, ...] = ()
  always: bool = False

  def log(self, out_dir: pathlib.Path) -> pathlib.Path:
    """Returns the path of the log."""
    return out_dir / f'{self.name}.log'

  def is_done(self, out_dir: pathlib.Path) -> bool:
    """Whether the program has run and need not run again."""
    path = out_dir / (self.makes or f'{self.name}.rc')
    if self.always or not path.exists():
      return False
    if not self.wants:
      return True
    try:
      known = json.loads(path.read_text())
    except ValueError:
      return False
    return set(self.wants) <= set(known)


def calibrate(setting: Setting) -> Part:
  """Measures figures of the host, and kernels by size."""
  out = setting.out_dir / 'calibration.json'
  command: tuple[str, ...]
  if setting.device == 'GPU':
    command = ('-m', 'gdp_grappler.bin.gdp', 'calibrate', f'--output={out}',
               f'--time_budget_s={setting.calibrate_s}')
  else:
    command = ('-m', 'benchmarks.gpu.dry_calibration', str(out),
               str(setting.calibrate_s))
  return Part('calibrate', command, out.name)


def steps(setting: Setting) -> Part:
  """Measures steps of models, and writes their graphs."""
  return Part('steps', ('-m', 'benchmarks.gpu.steps',
                        *_of_models(setting, setting.steps, setting.models)),
              'steps.json', _short(setting.models))


def losses(setting: Setting) -> Part:
  """Computes losses of models, placed and not placed."""
  return Part('losses',
              ('-m', 'benchmarks.gpu.losses',
               *_of_models(setting, min(setting.steps, 6), setting.placed)),
              'losses.json', _short(setting.placed))


def streams(setting: Setting) -> Part:
  """Measures steps on the whole card and on parts, with several options."""
  return Part('streams', ('-m', 'benchmarks.gpu.streams',
                          *_of_models(setting, setting.steps, setting.split)),
              'streams.json', streams_lib.keys(_short(setting.split)))


def predictions(setting: Setting) -> Part:
  """Predicts the recorded steps. This part always runs."""
  return Part('predictions',
              ('-m', 'benchmarks.gpu.predictions', setting.device,
               str(setting.out_dir)), 'predictions.json', always=True)


def too_big(setting: Setting) -> Part:
  """Trains a model that one card cannot hold, without and with the option."""
  return Part(
      'too_big',
      ('-m', 'benchmarks.gpu.too_big', setting.device, str(setting.out_dir)),
      'too_big.json', ('off', 'on'))


def profile(setting: Setting, name: str) -> Part:
  """Profiles the ops of the graph of a model."""
  out = setting.out_dir / f'profile_{name}.json'
  return Part(f'profile_{name}',
              ('-m', 'gdp_grappler.bin.gdp', 'profile',
               str(setting.out_dir / 'graphs' / f'{name}.pb'),
               f'--output={out}', f'--time_budget_s={setting.profile_s}',
               '--steps=10', f'--devices={setting.device.lower()}'), out.name)


def one_card(setting: Setting) -> Part:
  """Runs models in several ways until the time is over. A later run goes on."""
  out = setting.out_dir / 'one_card'
  has_card = setting.device == 'GPU'
  ways = [
      way for way in setting.ways
      if has_card or not one_card_ways.WAYS[way].needs_card
  ]
  longest_s = min(setting.deadline.remaining_s, _LONGEST_S) / 2
  arguments = [
      f'--out_dir={out}', f'--time_budget_s={longest_s:.0f}',
      f'--limit_s={longest_s:.0f}', f'--ways={",".join(ways)}'
  ]
  if setting.compared:
    arguments.append(f'--models={",".join(setting.compared)}')
  models = setting.compared or one_card_lib.models(has_card)
  return Part('one_card', ('-m', 'benchmarks.one_card', '--quiet', *arguments),
              f'one_card/{one_card_lib.FILE}', one_card_lib.keys(models, ways))


def program(name: str) -> Part:
  """A subcommand of gdp without arguments."""
  return Part(name, ('-m', 'gdp_grappler.bin.gdp', name))


def start(part: Part, setting: Setting) -> subprocess.Popen[Any]:
  """Starts the program. Its output goes to the log."""
  variables = {**os.environ, 'TF_FORCE_GPU_ALLOW_GROWTH': 'true'}
  variables.setdefault(environment.LOG_LEVEL, environment.QUIETEST)
  # Programs without placement disable the plugin themselves.
  variables.pop(environment.DISABLE, None)
  with part.log(setting.out_dir).open('w') as log:
    process = subprocess.Popen([sys.executable, *part.command], stdout=log,
                               stderr=subprocess.STDOUT,
                               stdin=subprocess.DEVNULL, env=variables,
                               start_new_session=True)
  atexit.register(_stop, process)  # Ctrl-C does not reach the part.
  return process


def _stop(process: subprocess.Popen[Any]) -> None:
  """Ends a part and its child processes at once, if the part still runs."""
  if process.poll() is None:
    os.killpg(process.pid, signal.SIGKILL)


def finish(part: Part, process: subprocess.Popen[Any], setting: Setting) -> int:
  """Waits for a part, and stops it when its time is over.

  If the part makes no file, its exit code is kept, unless it was stopped.
  """
  try:
    code = process.wait(min(_LONGEST_S, setting.deadline.remaining_s))
  except subprocess.TimeoutExpired:
    _stop(process)
    return process.wait()
  if not part.makes:
    (setting.out_dir / f'{part.name}.rc').write_text(f'{code}\n')
  return code


def _of_models(setting: Setting, count: int,
               names: Sequence[str]) -> tuple[str, ...]:
  limit_s = min(setting.models_s, setting.deadline.remaining_s)
  return (setting.device, str(setting.out_dir), str(count), f'{limit_s:.0f}',
          *names)


def _short(names: Sequence[str]) -> tuple[str, ...]:
  return tuple(map(here.short, names))
