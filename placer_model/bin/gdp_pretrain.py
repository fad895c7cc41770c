"""`gdp_pretrain`: trains a shipped network on random synthetic graphs.

  gdp_pretrain --model_dir=moves --config=small
  gdp_pretrain --model_dir=moves --held_out=rnnlm-2@tiny@2xP100,gnmt-2@4xP100
  gdp_pretrain --model_dir=placer --network=placer

By default the network is the move network, which chooses the moves of a search.
With --network=placer the network is GDP's network, the policy, which places a
graph in one forward pass (gdp_train calls it one_shot).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import types
from typing import Any

from gdp_grappler import environment

# Set before TensorFlow is imported: the plugin has nothing to place here.
os.environ.update(environment.without_plugin())

from absl import flags

from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler import quiet
from placer_model import run_folder
from placer_model.bin import command_line

_MODEL_DIR = flags.DEFINE_string(
    'model_dir', None, 'Where weights, curves and logs go. A run that is '
    'already there is continued.')
_CONFIG = flags.DEFINE_string(
    'config', 'small', "Sizes of the run: 'small' for minutes, or 'full' for "
    'the weights that ship, in less than an hour on two cores.')
_NETWORK = flags.DEFINE_enum(
    'network', 'moves', ['moves', 'placer'], 'Network that learns: the one '
    'that chooses moves of searches, or the one that places a graph in one '
    'forward pass.')
_ROUNDS = flags.DEFINE_integer(
    'rounds', None, 'Rounds of drawing, searching and learning, in all; by '
    'default as many as the config says. The learning rate of the placer '
    'network falls until the last of them.', lower_bound=1)
_TIME_BUDGET_S = flags.DEFINE_float('time_budget_s', None,
                                    'Seconds after which no round begins.',
                                    lower_bound=0)
_HELD_OUT = flags.DEFINE_list(
    'held_out', [], 'GRAPH@CLUSTER,...: what to test on after each round; '
    'never learned from.')
_RESTART = flags.DEFINE_boolean(
    'restart', False, 'Begin anew in a model_dir that holds a run; what it has '
    'learned is removed.')

_LINE = command_line.CommandLine(
    'gdp_pretrain', __doc__,
    (_MODEL_DIR, _NETWORK, _CONFIG, _ROUNDS, _TIME_BUDGET_S, _HELD_OUT,
     command_line.SEED, command_line.RAY, _RESTART), lambda: []
    if _MODEL_DIR.value else [_MODEL_DIR])


def run() -> None:
  """Runs the console script."""
  _LINE.run(main, f'{run_folder.SAME_COMMAND} goes on after the last round.')


def main(argv: list[str]) -> int:
  """Trains a network, and returns the exit code."""
  del argv
  return _LINE.exit_code('learning on drawn graphs', _pretrain)


def _pretrain() -> int:
  from gdp_grappler.problems import reading
  from gdp_grappler.processes import machines as machines_lib
  command_line.check_ray()
  files.check_folder(_MODEL_DIR.value)
  run_lib, options = _placer() if _NETWORK.value == 'placer' else _moves()
  # The held-out tasks are read first, so that a wrong name discards no run.
  held_out = {
      task: reading.read_task(task, _LINE.say, f'--{_HELD_OUT.name}: ')
      for task in _HELD_OUT.value
  }
  with run_folder.held(options.model_dir, f'--{_MODEL_DIR.name}'):
    if _RESTART.value:
      run_lib.restart(options.model_dir)
    with machines_lib.of(command_line.RAY.value, None) as machines:
      run_lib.pretrain(options, held_out, _print, machines=machines)
    _print(run_lib.next_steps(options.model_dir))
  return 0


def _moves() -> tuple[types.ModuleType, Any]:
  """Returns the run that learns which moves gain, and its options."""
  from placer_model.pretraining import pretrain_config
  from placer_model.pretraining import run as run_lib
  return run_lib, run_lib.PretrainOptions(pathlib.Path(_MODEL_DIR.value),
                                          pretrain_config.named(_CONFIG.value),
                                          command_line.SEED.value,
                                          _ROUNDS.value, _TIME_BUDGET_S.value)


def _placer() -> tuple[types.ModuleType, Any]:
  """Returns the run that learns placements, and its options."""
  extras.require('gdp_pretrain --network=placer', *extras.TRAIN)
  progress.doing('loading TensorFlow')
  with quiet.stderr_held():
    import tensorflow as tf

    from placer_model.pretraining.placements import config as config_lib
    from placer_model.pretraining.placements import run as run_lib
  command_line.make_repeatable(tf)
  config = config_lib.named(_CONFIG.value)
  if _ROUNDS.value is not None:
    config = dataclasses.replace(config, rounds=_ROUNDS.value)
  return run_lib, run_lib.PlacementOptions(pathlib.Path(_MODEL_DIR.value),
                                           config, command_line.SEED.value,
                                           _TIME_BUDGET_S.value)


def _print(line: str) -> None:
  progress.make_room()
  command_line.print_line(line)


if __name__ == '__main__':
  run()
