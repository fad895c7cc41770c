"""A run of supervised pretraining, and its folder.

A round draws problems and finds answers. It tests the network on these examples
before it trains on them and on all earlier ones. All that a round depends on is
in the folder, or follows from the seed and the round's number. So a resumed run
gives the same result as an uninterrupted one.

The folder has `policy/` (`export`), `checkpoints/`, `curves.json` (a line per
round) and `examples/`.
"""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import shlex
import time
from typing import Any, Callable, Mapping

import numpy as np
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.features import schema
from gdp_grappler.graph import coarsening
from gdp_grappler.placers import step as step_lib
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team
from placer_model import export
from placer_model import run_folder
from placer_model.pretraining import rounds
from placer_model.pretraining.placements import config as config_lib
from placer_model.pretraining.placements import evaluation
from placer_model.pretraining.placements import example as example_lib
from placer_model.pretraining.placements import student as student_lib
from placer_model.pretraining.placements import teacher
from placer_model.training import checkpoints

_IDENTITY = 'examples.json'
# Text of a field in the configs of the previous version. With this value, that
# version built the network that this version always builds.
_FORMER = 'max_neighbors=0, '
_TEACHER = f'{teacher.__name__}:make'
Curve = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class PlacementOptions:
  """Options of a run.

  Attributes:
    model_dir: Folder of the run.
    config: One of `config.CONFIGS`, or other settings.
    seed: Seed of all random numbers.
    time_budget_s: Seconds after which no round begins; None for no limit.
  """

  model_dir: pathlib.Path
  config: config_lib.PlacementConfig
  seed: int = 0
  time_budget_s: float | None = None


def pretrain(options: PlacementOptions, held_out: Mapping[str, step_lib.Step],
             tell: Callable[[str],
                            None], clock: Callable[[], float] = time.monotonic,
             machines: jobs_lib.Machines | None = None) -> Curve:
  """Runs, or resumes, until all is done or the time is up; then exports.

  Args:
    options: Options of the run.
    held_out: Problems by name that are never trained on.
    tell: Called with a line per round.
    clock: Returns seconds since a fixed moment.
    machines: Machines that draw problems and find answers; by default one
      process here. The result does not depend on them.

  Returns:
    The curve. For each round it has the loss, the network's agreement with the
    round's examples before it was trained on them, and the speed-ups on the
    held-out problems.

  Raises:
    GdpError: the folder holds another run, is damaged or cannot be written.
    JobError: a worker failed.
  """
  machines = machines or local_team.Here(1)
  tests = {name: evaluation.Evaluation(step) for name, step in held_out.items()}
  with machines.team(_TEACHER, options.config.teacher) as team:
    run = _Run(options, team, tell)
    last = options.config.rounds
    progress.doing(
        f'drawing, answering and learning, {last - len(run.curve)} rounds')
    rounds.go_on(run.curve, last, lambda: _line(run.round(tests), last),
                 rounds.clock_of(options.time_budget_s, clock), tell)
  run.export()
  return run.curve


class _Run:
  """The state of a run.

  Attributes:
    curve: A dict of measures for each round that is done.
  """

  def __init__(self, options: PlacementOptions,
               team: jobs_lib.Team[jobs_lib.Call],
               tell: Callable[[str], None]) -> None:
    """Reads the folder.

    Raises:
      GdpError: the folder holds another run, or is damaged.
    """
    self._options, self._dir = options, options.model_dir
    self._team = team
    config = options.config
    self._student = student_lib.Student(
        config.network.replace(seed=options.seed), config.learning_rate,
        config.patience)
    # The curve is in the checkpoint with the weights, so that no round is lost
    # or done twice.
    self._lines = tf.Variable('[]', dtype=tf.string)
    self._checkpoints = checkpoints.Checkpoints(
        self._dir / 'checkpoints',
        tf.train.Checkpoint(network=self._student.network,
                            optimizer=self._student.optimizer,
                            lines=self._lines))
    self._check_identity()
    self._checkpoints.restore(tell)
    self.curve: Curve = json.loads(self._lines.numpy())
    self._examples = [
        example for number in range(len(self.curve))
        for example in example_lib.load(self._dir / _file_name(number))
    ]

  def round(self, tests: Mapping[str, evaluation.Evaluation]) -> dict[str, Any]:
    """Draws, tests, trains and saves; returns a line of the curve."""
    config, number = self._options.config, len(self.curve)
    path = self._dir / _file_name(number)
    if not path.exists():
      example_lib.save(
          path,
          rounds.drawn(self._team, config.problems, self._options.seed, number))
    fresh = example_lib.load(path)
    line: dict[str, Any] = {
        'round': number, 'examples': len(fresh),
        'foretold': evaluation.agreement(self._student, fresh, config.patience)
    }
    self._examples += fresh
    rng = np.random.default_rng((self._options.seed, number, 1))
    losses = [
        self._student.learn([
            self._examples[k]
            for k in rng.integers(len(self._examples), size=config.batch)
        ], config.rate(number * config.steps + step))
        for step in range(config.steps)
    ]
    line['loss'] = float(np.mean(losses))
    line['held_out'] = {
        name: test.result(self._student) for name, test in tests.items()
    }
    self.curve.append(line)
    self._save()
    return line

  def export(self) -> None:
    """Writes the policy.

    Raises:
      ExportError: the policy cannot be written.
    """
    export.export_policy(
        self._student.network, self._dir / 'policy', {
            'units': coarsening.NESTED, 'seed': self._options.seed,
            'examples': len(self._examples), 'rounds': len(self.curve)
        })

  def _save(self) -> None:
    self._lines.assign(json.dumps(self.curve))
    self._checkpoints.save(len(self.curve))
    files.write_atomically(self._dir / 'curves.json',
                           json.dumps(self.curve, indent=1) + '\n')

  def _check_identity(self) -> None:
    """Raises a GdpError if the folder holds another run."""
    config, path = self._options.config, self._dir / _IDENTITY
    own = {
        'config': repr(config), 'seed': self._options.seed,
        'schema': schema.fingerprint()
    }
    if not path.exists():
      run_folder.check_no_policy(self._dir)
      files.write_atomically(path,
                             json.dumps(own, indent=1) + '\n', make_folder=True)
      return
    try:
      found = files.parse_json(files.read(path))
    except (OSError, ValueError) as error:
      raise errors.GdpError(
          f'Cannot go on with {path}: {error}. Restore it, or give another '
          '--model_dir.') from error
    if isinstance(found, dict):
      found['config'] = str(found.get('config')).replace(_FORMER, '')
    if found != own:
      raise errors.GdpError(
          f'{self._dir} holds a run with another seed, config, features or '
          'number of rounds. Give another --model_dir, or --restart to begin '
          'anew.')


def next_steps(model_dir: pathlib.Path) -> str:
  """Returns a text on what to do with the result of a run."""
  policy = shlex.quote(str(model_dir / 'policy'))
  return (f'Next: see {model_dir / "curves.json"} for how well answers are '
          'foretold; place graphs with `gdp place GRAPH --placer=gdp_one_shot '
          f'--policy={policy}`, or go on with `gdp_train '
          f'--init_policy={policy}`.')


def restart(model_dir: pathlib.Path) -> None:
  """Removes what a run wrote into its folder, and nothing else.

  Raises:
    GdpError: see `run_folder.remove_own`.
  """
  run_folder.remove_own(
      model_dir,
      (_IDENTITY, 'curves.json', 'checkpoints', 'examples', 'policy'),
      run_folder.own_json(model_dir / _IDENTITY, ('config', 'seed', 'schema')))


def _file_name(number: int) -> str:
  return f'examples/round_{number:05d}.npz'


def _line(line: dict[str, Any], last: int) -> str:
  parts = [
      f'round {line["round"] + 1} of {last}', f'loss {line["loss"]:.3f} nats',
      f'foretold {line["foretold"]:.0%} of new answers'
  ]
  tests = line['held_out'].values()
  if tests:
    parts.append('held out '
                 f'{np.exp(np.mean([math.log(t) for t in tests])):.3f} times '
                 'as fast as one device')
  return ', '.join(parts)
