"""`gdp_train`: trains a network that places a graph, or several.

By default the network is the move network, which chooses the moves of a search.

  gdp_train --graph=captured.pb --cluster=2xP100 --model_dir=model
  gdp_train --graphs=rnnlm-2,gnmt-2@4xP100 --clusters=2xP100,2xK40
      --model_dir=model
  gdp_train --graph=captured.pb --reward=measured --local_workers=2
      --model_dir=model
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
import types
from typing import Any

from gdp_grappler import environment

# Set before TensorFlow is imported: the plugin has nothing to place here.
os.environ.update(environment.without_plugin())

from absl import flags

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler import progress
from gdp_grappler import quiet
from gdp_grappler.problems import help_texts
from gdp_grappler.problems import rewards
from placer_model.bin import command_line

_GRAPH = flags.DEFINE_string('graph', None,
                             help_texts.sentence(help_texts.GRAPH))
_CLUSTER = flags.DEFINE_string(
    'cluster', None, f'{help_texts.sentence(help_texts.CLUSTER)} With --target '
    'or --local_workers, by default the devices found there.')
_GRAPHS = flags.DEFINE_string(
    'graphs', None, 'Instead of --graph: graphs that one network learns, as '
    'NAME[@CLUSTER], separated by commas, or a file FILE.txt with one in each '
    'line.')
_CLUSTERS = flags.DEFINE_string(
    'clusters', None, 'Clusters, separated by commas. Each graph of --graphs '
    'that names no cluster runs on each of them; by default, workloads run on '
    "the papers' clusters.")
_REWARD = flags.DEFINE_enum(
    'reward', rewards.SIMULATED, list(rewards.ALL),
    'Price placements by simulation, or run them: on the devices of this '
    'machine, of a --target or of --local_workers, or on emulated GPUs.')
_TARGET = flags.DEFINE_string(
    'target', None, 'grpc://host:port of a running TensorFlow cluster to '
    'measure on.')
_MODEL_DIR = flags.DEFINE_string(
    'model_dir', None, 'Where checkpoints, plans, results.json and the trained '
    'network (folder policy) go. A run that is already there is continued.')
_ITERATIONS = flags.DEFINE_integer(
    'iterations', None, 'Rounds of rollouts and updates; by default as many '
    'as the config says.', lower_bound=0)
_TIME_BUDGET_S = flags.DEFINE_float(
    'time_budget_s', None, 'Seconds for the whole run, start and export '
    'included. With --network=one_shot learning ends some 20 s earlier, or '
    'more if programs start slowly here.', lower_bound=0)
_ROLLOUTS = flags.DEFINE_integer(
    'rollouts', None, 'Placements sampled per iteration; with '
    '--network=moves, moves that are priced.', lower_bound=1)
_CONFIG = flags.DEFINE_string(
    'config', 'default',
    "Sizes and switches: 'default', 'gdp_one' for the paper's "
    'method without search and imitation, or its ablations paper_no_attention, '
    'paper_no_superposition and paper_no_graphsage.')
_NETWORK = flags.DEFINE_enum(
    'network', None, ['moves', 'one_shot'],
    'Which network learns: moves, which '
    'chooses the moves of a search, or one_shot, which decides about a graph '
    'in one forward pass, as in the papers. By default moves, unless --config, '
    '--units, --init_policy or the run in --model_dir is for one_shot.')
_UNITS = flags.DEFINE_enum(
    'units', 'coarse', ['coarse', 'fine'], 'One decision per cluster of ops, '
    'or one per group of ops that have to stay together.')
_INIT_POLICY = flags.DEFINE_string(
    'init_policy', None, "Start from the weights of a network: 'shipped' for "
    'the one that is installed, a folder of gdp_train, or the model_dir of '
    'another run with the same config. With --network=moves shipped is the '
    'default.')
_RESTART = flags.DEFINE_boolean(
    'restart', False, 'Begin anew in a model_dir that holds a run; what it has '
    'learned is removed.')
_SEARCHES = flags.DEFINE_integer(
    'searches', 0, 'Local searches before learning, each with a seed of its '
    'own. Learning also starts from the best placement that they find.',
    lower_bound=0)
_REQUIRED = (_GRAPH, _CLUSTER, _MODEL_DIR)


def _missing() -> list[Any]:
  """Returns required flags that are missing; a target replaces --cluster."""
  elsewhere = _TARGET.value or command_line.LOCAL_WORKERS.value
  given = (_GRAPH, _CLUSTER) if _GRAPHS.value is not None else ((
      _CLUSTER,) if elsewhere else ())
  names = [flag.name for flag in given]
  return [f for f in _REQUIRED if not f.value and f.name not in names]


_LINE = command_line.CommandLine(
    'gdp_train', __doc__,
    (_GRAPH, _CLUSTER, _GRAPHS, _CLUSTERS, _REWARD, _TARGET,
     command_line.LOCAL_WORKERS, _MODEL_DIR, _ITERATIONS, _TIME_BUDGET_S,
     command_line.SEED, _ROLLOUTS, _CONFIG, _UNITS, command_line.BATCH_SIZE,
     command_line.TRIP_COUNT, command_line.PROFILE, command_line.MAX_MEMORY,
     command_line.MAY_ROUND, _NETWORK, _INIT_POLICY, _SEARCHES,
     command_line.RAY, _RESTART), _missing)


def run() -> None:
  """Runs the console script."""
  _LINE.run(main, 'this run had learned nothing yet.')


def main(argv: list[str]) -> int:
  """Trains, and returns the exit code."""
  del argv
  return _LINE.exit_code(f'learning to place {_GRAPHS.value or _GRAPH.value}',
                         _train)


def _train() -> int:
  start_s, deadline = time.monotonic(), deadlines.within(_TIME_BUDGET_S.value)
  extras.require('gdp_train', *extras.TRAIN, 'pymetis')
  command_line.check_ray()
  files.check_folder(_MODEL_DIR.value)
  if command_line.RAY.value and _REWARD.value != rewards.SIMULATED:
    raise errors.GdpError(f'--reward={_REWARD.value} runs steps on this '
                          'machine alone. Leave --ray out, or give '
                          f'--reward={rewards.SIMULATED}.')
  progress.doing('loading TensorFlow')
  with quiet.stderr_held():
    import tensorflow as tf

    from placer_model.bin import console
    from placer_model.training import interrupts
    from placer_model.training import network_kinds
    from placer_model.training import run as run_lib
    from placer_model.training import task as task_lib
    from placer_model.training.moves import move_run
  # A fresh process that checks the policy loads TensorFlow as well, and more.
  slow_s = max(2 * (time.monotonic() - start_s) - run_lib.EXPORT_S, 0.)
  command_line.make_repeatable(tf)
  try:
    every = _every(task_lib, _network(network_kinds))
    if every[0].network == network_kinds.MOVES:
      move_run.train(every, console.Console(), deadline, start_s)
    else:
      run_lib.train(every, console.Console(), deadline.earlier(slow_s), start_s)
    if deadline.passed:
      _LINE.say(f'--time_budget_s={_TIME_BUDGET_S.value:g}: it took '
                f'{time.monotonic() - start_s:.0f} s. Starting, reading the '
                'graph and checking what is exported cannot be cut short.')
  except interrupts.Interrupted as interrupted:
    _LINE.say(str(interrupted))
    return 130
  return 0


def _network(network_kinds: types.ModuleType) -> str:
  """Returns the kind of network that the flags choose.

  Raises:
    GdpError: the network that is named has no such config or units.
  """
  # absl's flag holders have no truth value, so their values are compared.
  of_papers = [f for f in (_CONFIG, _UNITS) if f.value != f.default]
  if _NETWORK.value == network_kinds.MOVES and of_papers:
    raise errors.GdpError(
        f'--{of_papers[0].name}={of_papers[0].value} is about the network of '
        'one forward pass. Leave it out, or give --network=one_shot.')
  if _NETWORK.value:
    return str(_NETWORK.value)
  if of_papers:
    return str(network_kinds.ONE_SHOT)
  folders = [] if _RESTART.value else [_MODEL_DIR.value]
  if _INIT_POLICY.value not in (None, 'shipped'):
    folders.append(_INIT_POLICY.value)
  kinds = (network_kinds.of_folder(pathlib.Path(each)) for each in folders)
  return next((kind for kind in kinds if kind), network_kinds.MOVES)


def _init_policy(task_lib: types.ModuleType, network: str) -> Any:
  """Returns the folder of the initial weights; None for the default ones."""
  value = _INIT_POLICY.value
  if not value or network != task_lib.network_kinds.ONE_SHOT and (
      value == task_lib.initial_weights.SHIPPED):
    return None
  return task_lib.initial_weights.folder(value)


def _every(task_lib: types.ModuleType, network: str) -> list[Any]:
  """Returns the `task.TrainOptions` of each graph.

  Raises:
    GdpError: flags that contradict each other, or name no graph.
  """
  options = _options(task_lib, network)
  if _GRAPHS.value is None:
    if _CLUSTERS.value is not None:
      raise errors.GdpError('--clusters goes with --graphs. Give --cluster.')
    return [options]
  for flag in (_GRAPH, _CLUSTER):
    if flag.value:
      raise errors.GdpError(f'Both --graphs and --{flag.name} are given. '
                            'Leave one of them out.')
  if options.reward != rewards.SIMULATED:
    raise errors.GdpError('--graphs are priced by simulation. Leave out '
                          f'--reward={options.reward}, or give one --graph.')
  return [
      dataclasses.replace(options, graph=source, cluster=cluster)
      for source, cluster in _pairs(_GRAPHS.value, _CLUSTERS.value)
  ]


def _pairs(graphs: str, clusters: str | None) -> list[tuple[str, str]]:
  """Returns the graphs and clusters of --graphs and --clusters, each once."""
  from gdp_grappler.workloads import registry
  from placer_model.benchmark import tasks as tasks_lib
  if graphs.endswith('.txt') and ',' not in graphs:
    try:
      text = files.read(graphs).decode('utf-8', 'replace')
    except OSError as error:
      raise errors.GdpError(
          f'Cannot read --graphs={graphs}: {error.strerror}.') from error
    graphs = ','.join(text.splitlines())
  if not graphs.replace(',', '').strip():
    raise errors.GdpError('--graphs names no graph. Give for example '
                          'rnnlm-2,wavenet-2x18.')
  defaults = [part.strip() for part in (clusters or '').split(',')]
  found = [
      task for default in [part for part in defaults if part] or ['']
      for task in tasks_lib.parse(graphs, registry.names(
      ), lambda name: registry.get(name).num_devices, default_cluster=default)
  ]
  return list(dict.fromkeys((task.source, task.cluster) for task in found))


def _options(task_lib: types.ModuleType, network: str) -> Any:
  """Returns the flags as `task.TrainOptions`."""
  # Imports NumPy, which takes longer than the first line may.
  from gdp_grappler.cluster import max_memory
  return task_lib.TrainOptions(
      graph=_GRAPH.value or '', cluster=_CLUSTER.value or '',
      reward=_REWARD.value, target=_TARGET.value or '',
      local_workers=command_line.LOCAL_WORKERS.value, model_dir=pathlib.Path(
          _MODEL_DIR.value), units=_UNITS.value, config=_CONFIG.value,
      seed=command_line.SEED.value, batch_size=command_line.BATCH_SIZE.value,
      trip_count=command_line.TRIP_COUNT.value,
      profile=command_line.PROFILE.value or '',
      may_round=command_line.MAY_ROUND.value, iterations=_ITERATIONS.value,
      rollouts=_ROLLOUTS.value, time_budget_s=_TIME_BUDGET_S.value,
      network=network, init_policy=_init_policy(task_lib, network),
      restart=_RESTART.value, searches=_SEARCHES.value,
      ray=command_line.RAY.value, max_memory=max_memory.parse(
          command_line.MAX_MEMORY.value), command=_LINE.typed())


if __name__ == '__main__':
  run()
