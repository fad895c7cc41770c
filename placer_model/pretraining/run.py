"""A run of pretraining of the move network, and its folder.

A round draws problems and searches on each. It first tests the network on the
logs of these searches. Then it trains a network on these logs and on logs of
earlier rounds. All that a round depends on is in the folder, or follows from
the seed and the round's number. So a resumed run gives the same result as an
uninterrupted one.

The folder has `policy/` (`move_folder`), `state.npz` (for resuming),
`curves.json` (a line per round) and `logs/`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import os
import pathlib
import shlex
import time
from typing import Any, Callable, Mapping

import numpy as np

from gdp_grappler import array_files
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler.features.moves import schema
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team
from placer_model import run_folder
from placer_model.pretraining import learner as learner_lib
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config
from placer_model.pretraining import quality
from placer_model.pretraining import rounds
from placer_model.pretraining import searches

_HELD_OUT_SEED = 1  # Of the searches for tests, so that rounds are comparable.
_SEARCH = f'{searches.__name__}:make'
# Part of a run's identity. Change it with the seeds of problems.
_STREAMS = 'by round and number'
# Names of logs of rounds, and of held-out logs.
_LOGS = 'round_*.npz', f'*_{"[0-9a-f]" * 8}.npz'
# Arrays of a network.
_ARRAYS = tuple(field.name
                for field in dataclasses.fields(move_network.MoveNetwork)
                if field.name != 'features')
Curve = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class PretrainOptions:
  """Options of a run.

  Attributes:
    model_dir: Folder of the run.
    config: One of `pretrain_config.CONFIGS`, or other settings.
    seed: Seed of all random numbers.
    rounds: Number of rounds of the run. None means the config's.
    time_budget_s: Seconds after which no round begins; None for no limit.
  """

  model_dir: pathlib.Path
  config: pretrain_config.PretrainConfig
  seed: int = 0
  rounds: int | None = None
  time_budget_s: float | None = None


def pretrain(options: PretrainOptions, held_out: Mapping[str, step_lib.Step],
             tell: Callable[[str],
                            None], clock: Callable[[], float] = time.monotonic,
             machines: jobs_lib.Machines | None = None) -> Curve:
  """Runs, or resumes, until all rounds are done or the time is up.

  Args:
    options: Options of the run.
    held_out: Problems by name that are never trained on.
    tell: Called with a line per round.
    clock: Returns seconds since a fixed moment.
    machines: Machines for the searches; by default one process here. The result
      does not depend on them.

  Returns:
    The curve. For each round it has the losses, the network's quality on the
    round's logs before it was trained on them, and its quality on the held-out
    problems.

  Raises:
    GdpError: the folder holds another run, is damaged or cannot be written.
    JobError: a search failed.
  """
  machines = machines or local_team.Here(1)
  threads = max(1, len(os.sched_getaffinity(0)) // machines.width)
  with machines.team(_SEARCH, searches.Setup(options.config, threads)) as team:
    return _pretrain(options, held_out, tell, clock, team)


def _pretrain(options: PretrainOptions, held_out: Mapping[str, step_lib.Step],
              tell: Callable[[str], None], clock: Callable[[], float],
              team: jobs_lib.Team[jobs_lib.Call]) -> Curve:
  """Runs `pretrain` with a team for searches."""
  run = _Run(options, team)
  in_time = rounds.clock_of(options.time_budget_s, clock)
  tests = {
      name:
          run.log_of(
              f'held_out/{run.test_name(name, step)}',
              functools.partial(searches.of_step, step, options.config.held_out,
                                _HELD_OUT_SEED))
      for name, step in held_out.items()
  }
  last = options.config.rounds if options.rounds is None else options.rounds
  progress.doing(
      f'drawing, searching and learning, {last - len(run.curve)} rounds')
  rounds.go_on(run.curve, last, lambda: _line(run.round(tests), last), in_time,
               tell)
  return run.curve


def next_steps(model_dir: pathlib.Path) -> str:
  """Returns a text on what to do with the result of a run."""
  policy = model_dir / 'policy'
  if not policy.exists():
    return f'Next: {run_folder.SAME_COMMAND} with more time makes {policy}.'
  return (f'Next: see {model_dir / "curves.json"} for how well moves are '
          'foretold; place graphs with `gdp place GRAPH --policy='
          f'{shlex.quote(str(policy))}`; {run_folder.SAME_COMMAND} and with '
          'more --rounds goes on.')


class _Run:
  """The state of a run.

  Attributes:
    curve: A dict of measures for each round that is done.
  """

  def __init__(self, options: PretrainOptions,
               team: jobs_lib.Team[jobs_lib.Call]) -> None:
    """Reads the folder.

    Args:
      options: Options of the run.
      team: Workers for searches.

    Raises:
      GdpError: the folder holds another run, or is damaged.
    """
    self._options, self._dir = options, options.model_dir
    self._team = team
    self._names = schema.names(move_scoring.KINDS)
    self._key = hashlib.sha256(
        repr((dataclasses.replace(options.config, rounds=0), options.seed,
              self._names, _STREAMS)).encode()).hexdigest()
    self.curve: Curve = []
    self._network: move_network.MoveNetwork | None = None
    if (self._dir / 'state.npz').exists():
      self._restore()
    else:
      run_folder.check_no_policy(self._dir)
      # Logs are those of a run that ended in its first round.
      _remove_logs(self._dir / 'logs')

  def test_name(self, task: str, step: step_lib.Step) -> str:
    """Returns the name of a held-out log, by its problem and its features.

    Args:
      task: Name of the held-out problem.
      step: The problem, which the user may change without a new name.
    """
    readable = ''.join(c if c.isalnum() or c in '.-' else '_' for c in task)
    content = repr(
        (task, step.graph.fingerprint, step.cluster.to_json(), self._names))
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return f'{readable[-60:]}_{digest}'

  def log_of(self, name: str, make: Callable[[], logs.Log]) -> logs.Log:
    """Returns a log of the folder, and makes it if it is missing."""
    path = self._dir / f'{name}.npz'
    if not path.exists():
      logs.save(path, make())
    return logs.load(path)

  def round(self, tests: Mapping[str, logs.Log]) -> dict[str, Any]:
    """Searches, tests, trains and saves; returns a line of the curve."""
    config, number = self._options.config, len(self.curve)
    fresh = self.log_of(
        _log_name(number), lambda: logs.joined(
            rounds.drawn(self._team, config.problems, self._options.seed, number
                        )))
    first = max(number + 1 - config.memory, 0)
    log = logs.joined([
        logs.load(self._dir / f'{_log_name(i)}.npz')
        for i in range(first, number)
    ] + [fresh])
    rng = np.random.default_rng((self._options.seed, number, 1))
    foretold = quality.of_network(
        self._network or
        learner_lib.first_network(self._names, fresh, config.hidden, rng),
        fresh)
    # The network is trained anew on the logs of the latest rounds. If it
    # continued from its present weights, it would learn from the first logs
    # many times.
    self._network, losses = learner_lib.trained(self._names, log, config, rng)
    line = {
        'round': number, 'losses': dataclasses.asdict(losses),
        'foretold': dataclasses.asdict(foretold), 'held_out': {
            name: dataclasses.asdict(quality.of_network(self._network, test))
            for name, test in tests.items()
        }
    }
    self.curve.append(line)
    self._save()
    return line

  def _save(self) -> None:
    """Saves the round, whose end the state marks."""
    files.write_atomically(self._dir / 'curves.json',
                           json.dumps(self.curve, indent=1) + '\n')
    arrays: dict[str, Any] = {
        'key': self._key, 'curve': json.dumps(self.curve),
        **{name: getattr(self._network, name) for name in _ARRAYS}
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    files.write_atomically(self._dir / 'state.npz', buffer.getvalue())
    self._save_policy()
    old = len(self.curve) - self._options.config.memory
    if old >= 0:
      (self._dir / f'{_log_name(old)}.npz').unlink(missing_ok=True)

  def _save_policy(self) -> None:
    """Writes the policy, after the state, which tells whose policy it is."""
    assert self._network is not None
    move_folder.save(
        self._dir / 'policy', self._network, {
            'trained_by': 'gdp_pretrain', 'seed': self._options.seed,
            'rounds': len(self.curve)
        })

  def _restore(self) -> None:
    path = self._dir / 'state.npz'
    try:
      state = array_files.read(path)
      if str(state['key']) != self._key:
        raise errors.GdpError(
            f'{self._dir} holds a run with another seed, config or features. '
            'Give another --model_dir, or --restart to begin anew.')
      self.curve = json.loads(str(state['curve']))
      self._network = move_network.MoveNetwork(
          self._names, **{name: state[name] for name in _ARRAYS})
    except (OSError, ValueError, LookupError, TypeError) as error:
      raise errors.GdpError(
          f'Cannot go on with {path}: {error}. Restore it, or give another '
          '--model_dir.') from error
    # A run that was killed, or an earlier version, may not have written it.
    self._save_policy()


def restart(model_dir: pathlib.Path) -> None:
  """Removes what a run wrote into its folder, and nothing else.

  Raises:
    GdpError: see `run_folder.remove_own`.
  """
  try:
    own = 'key' in array_files.read(model_dir / 'state.npz')
  except (OSError, ValueError):
    own = False
  run_folder.remove_own(model_dir, ('policy', 'state.npz', 'curves.json'), own)
  _remove_logs(model_dir / 'logs')
  _remove_logs(model_dir / 'held_out')


def _remove_logs(folder: pathlib.Path) -> None:
  """Removes files of a run from a folder, and then the folder if it is empty.

  A user may have a folder of the same name for other files.
  """
  for pattern in _LOGS:
    run_folder.remove(folder.glob(pattern))
  with contextlib.suppress(OSError):
    folder.rmdir()


def _log_name(number: int) -> str:
  return f'logs/round_{number:05d}'


def _line(line: dict[str, Any], last: int) -> str:
  parts = [
      f'round {line["round"] + 1} of {last}',
      f'{line["foretold"]["moves"]} moves', f'loss '
      f'{line["losses"]["logistic"]:.4f}',
      f'AUC of new logs {line["foretold"]["auc"]:.3f}'
  ]
  tests = line['held_out'].values()
  if tests:
    parts.append(
        f'held out {np.mean([t["auc"] for t in tests]):.3f}, best quarter '
        f'keeps {np.mean([t["kept"] for t in tests]):.0%} of gaining moves')
  return ', '.join(parts)
