"""gdp_train's journey: a graph in, a model directory out."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import re
import signal
import time
from typing import Any

import numpy as np
import rich.console

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import remote_devices
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import given_costs
from gdp_grappler.evaluation import local_workers
from gdp_grappler.evaluation import measurer
from gdp_grappler.evaluation import simulator
from gdp_grappler.features import featurizer
from gdp_grappler.features import schema
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.graph import sources
from gdp_grappler.placers import placer as placer_lib
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model.training import baselines as baselines_lib
from placer_model.training import checkpoints
from placer_model.training import environment as environment_lib
from placer_model.training import json_files
from placer_model.training import progress as progress_lib
from placer_model.training import results as results_lib
from placer_model.training import summaries
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

REWARDS = ('simulated', 'measured')
UNITS = ('coarse', 'fine')
# Fields of TrainConfig that may change when a run goes on.
_NOT_IDENTITY = ('iterations', 'checkpoint_iterations', 'checkpoint_s')


class Interrupted(Exception):
  """Ctrl-C; a checkpoint has been written."""


@dataclasses.dataclass(frozen=True)
class Options:
  """What the command line says.

  Attributes:
    graph: What `sources.load` reads.
    cluster: What `resolve.resolve` knows; '' or 'target' for the devices found
      where steps are measured.
    reward: One of `REWARDS`.
    model_dir: Where everything goes.
    units: One of `UNITS`; 'fine' decides about every group of ops by itself.
    config: Name of the presets of `train_config` and `placer_model.config`.
    seed: Of weights, samples and baselines.
    batch_size: Stands for dimensions that the graph leaves open.
    iterations: Instead of the preset's; None keeps it.
    rollouts: Instead of the preset's; None keeps it.
    time_budget_s: Rollouts and updates stop after so many seconds, at the end
      of an iteration; None: only `iterations` counts.
    init_policy: Model directory of another run whose weights to start from.
    target: 'grpc://host:port' of the TensorFlow cluster to measure on.
    local_workers: Servers to start on this machine and to measure on.
  """

  graph: str
  cluster: str
  reward: str
  model_dir: pathlib.Path
  units: str = 'coarse'
  config: str = 'default'
  seed: int = 0
  batch_size: int = sources.DEFAULT_BATCH_SIZE
  iterations: int | None = None
  rollouts: int | None = None
  time_budget_s: float | None = None
  init_policy: pathlib.Path | None = None
  target: str = ''
  local_workers: int = 0

  def train_config(self) -> train_config.TrainConfig:
    """The preset, cut down for measuring, with what was given."""
    config = train_config.preset(self.config)
    if self.reward == 'measured':
      config = train_config.for_measuring(config)
    changes = {name: getattr(self, name) for name in ('iterations', 'rollouts')
               if getattr(self, name) is not None}
    return dataclasses.replace(config, **changes)


def train(options: Options, console: rich.console.Console) -> dict[str, Any]:
  """Trains, exports and reports; returns the content of results.json.

  Args:
    options: What to do.
    console: Where progress and the table go.

  Raises:
    GdpError: bad input, a full disk, or a model directory of another run.
    MeasurementError: no step of the graph runs.
    Interrupted: Ctrl-C.
  """
  start = time.monotonic()
  config = options.train_config()
  placer_config = config_lib.preset(options.config).replace(seed=options.seed)
  task = _load_task(options)
  checkpoints.claim(options.model_dir,
                    _identity(options, config, placer_config, task))
  with contextlib.ExitStack() as stack:
    if isinstance(task.evaluator, measurer.Measurer):
      stack.enter_context(task.evaluator)
    with _Interrupt() as interrupt:
      baselines = baselines_lib.place_all(task.problem)
      _check_that_steps_run(task, baselines)
      trainer = _make_trainer(options, config, placer_config, task, baselines)
      store = checkpoints.Checkpoints(options.model_dir / 'checkpoints',
                                      trainer.checkpoint())
      _learn(options, config, trainer, store, interrupt, console)
    return _conclude(options, task, baselines, trainer, console, start)


@dataclasses.dataclass(frozen=True, eq=False)
class _Task:
  """A graph to be placed and everything derived from it."""

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  evaluator: evaluator_lib.Evaluator
  op_seconds: np.ndarray
  units: np.ndarray
  features: schema.GraphFeatures
  problem: placer_lib.Problem


def _load_task(options) -> _Task:
  _cluster(options)  # An unknown name is told at once.
  problem = _problem(options)
  graph, cluster = problem.graph, problem.cluster
  units = (coarsening.coarsen(graph, problem.allowed, problem.op_seconds)
           if options.units == 'coarse' else coarsening.groups_as_units(graph))
  features = featurizer.featurize(graph, cluster, units, problem.op_seconds)
  return _Task(graph, cluster, problem.evaluator, problem.op_seconds, units,
               features, problem)


def _problem(options) -> placer_lib.Problem:
  given = given_costs.load(options.graph)
  if given is None:
    source = sources.load(options.graph, batch_size=options.batch_size)
    cluster = _cluster(options, source.devices)
    graph = graph_def_io.read(source, unknown_dim=options.batch_size)
    evaluator = _make_evaluator(options, cluster, source)
  elif options.reward == 'measured':
    raise errors.GdpError(
        f'{options.graph} has costs but no TensorFlow ops, so its steps cannot '
        'be measured. Use --reward=simulated.')
  else:
    graph, costs = given
    cluster = _cluster(options)
    evaluator = simulator.Simulator(cluster, costs)
  return placer_lib.Problem(graph, cluster, evaluator, options.seed)


def _cluster(options, devices=()) -> cluster_lib.Cluster:
  """Where the graph is to run."""
  there = _measured_cluster(options)
  if there is None:
    return resolve.resolve(options.cluster, devices)
  if options.cluster in ('', 'target', options.target):
    return there
  given = resolve.resolve(options.cluster, devices)
  missing = [n for n in given.device_names if n not in there.device_names]
  if missing:
    raise errors.ClusterError(
        f'Cluster "{given.name}" has device {missing[0]}, but "{there.name}", '
        f'to measure on, has {", ".join(there.device_names)}. Give a cluster '
        'file with these names, or --cluster=target.')
  return given


def _measured_cluster(options) -> cluster_lib.Cluster | None:
  """The devices of a target or of local workers; None without these."""
  if options.local_workers and options.target:
    raise errors.GdpError('Both --target and --local_workers are given. Give '
                          'one of them.')
  if not options.local_workers and not options.target:
    if options.cluster in ('', 'target'):
      raise errors.GdpError('There is no cluster. Give --cluster; or, to '
                            'measure, --target or --local_workers.')
    return None
  if options.reward != 'measured':
    raise errors.GdpError('--target and --local_workers are to measure on. '
                          'Give --reward=measured too.')
  if options.local_workers:
    return local_workers.cluster(options.local_workers)
  return remote_devices.remote_cluster(options.target)


def _make_evaluator(options, cluster, source: source_graph.SourceGraph
                   ) -> evaluator_lib.Evaluator:
  if options.reward == 'simulated':
    return simulator.Simulator(cluster)
  return measurer.Measurer(
      source, cluster, batch_size=options.batch_size, target=options.target,
      local_workers=options.local_workers,
      cache_dir=options.model_dir / 'measurements')


def _identity(options, config, placer_config, task) -> dict[str, Any]:
  """All that has to be equal for a run to go on; what config.json holds."""
  train = {key: value for key, value in dataclasses.asdict(config).items()
           if key not in _NOT_IDENTITY}
  return {
      'graph': {'name': task.graph.name,
                'fingerprint': task.graph.fingerprint},
      'cluster': json.loads(task.cluster.to_json()),
      'reward': options.reward,
      'units': options.units,
      'seed': options.seed,
      'init_policy': str(options.init_policy) if options.init_policy else None,
      'schema': schema.fingerprint(),
      'train': train,
      'placer': dataclasses.asdict(placer_config),
  }


def _make_trainer(options, config, placer_config, task, baselines
                 ) -> trainer_lib.Trainer:
  network = network_lib.PlacerNetwork(placer_config)
  if options.init_policy:
    checkpoints.load_placer(options.init_policy / 'checkpoints', network)
  environment = environment_lib.Environment(
      task.graph, task.cluster, task.evaluator, task.units, task.features,
      simulated=options.reward == 'simulated')
  starts = np.stack([environment.decisions(b.placement) for b in baselines])
  return trainer_lib.Trainer(
      environment, network, network_lib.features_to_tensors(task.features),
      config, options.seed, starts,
      baselines_lib.reference_s(baselines, task.op_seconds))


def _check_that_steps_run(task, baselines):
  """Ends a run from which nothing could be learned."""
  failure = results_lib.never_runs([b.evaluation for b in baselines])
  if failure is not None:
    raise errors.MeasurementError(
        f'Steps of "{task.graph.name}" fail in all {len(baselines)} placements '
        f'to start from: {failure.message.rstrip(". ")}. Mend that, or use '
        '--reward=simulated.')


def _learn(options, config, trainer, store, interrupt, console):
  """Warm-up and iterations until number, time or Ctrl-C ends them."""
  if store.restore():
    console.print(f'Resuming after iteration {trainer.state.iteration}.',
                  highlight=False)
  start = time.monotonic()
  def stopped() -> bool:
    return interrupt.pending or (
        options.time_budget_s is not None
        and time.monotonic() - start >= options.time_budget_s)
  saver = _Saver(store, trainer.state, config)
  with progress_lib.Progress(console, trainer.state.iteration,
                             config.iterations,
                             options.time_budget_s) as progress:
    parts = trainer.warm_up()
    while not stopped() and next(parts, 'done') != 'done':
      progress.show_warm_up(trainer.state)
      saver.save_if_due()
    events = summaries.Summaries(options.model_dir / 'tensorboard')
    while trainer.state.iteration < config.iterations and not stopped():
      report = trainer.step()
      progress.show(report)
      events.write(report)
      saver.save_if_due()
    events.close()
  saver.save()
  if interrupt.pending:
    raise Interrupted(
        f'interrupted after iteration {trainer.state.iteration}; checkpoint '
        'written. Run the same command again to go on from there.')


class _Saver:
  """Decides when to write a checkpoint."""

  def __init__(self, store, state, config):
    self._store, self._state, self._config = store, state, config
    self._saved_s = time.monotonic()
    self._saved_iteration = state.iteration

  def save_if_due(self):
    """Saves if enough time or enough iterations have passed."""
    age_s = time.monotonic() - self._saved_s
    new = self._state.iteration - self._saved_iteration
    if (age_s >= self._config.checkpoint_s
        or new >= self._config.checkpoint_iterations):
      self.save()

  def save(self):
    """Saves."""
    self._store.save(self._state.iteration)
    self._saved_s = time.monotonic()
    self._saved_iteration = self._state.iteration


def _conclude(options, task, baselines, trainer, console, start
             ) -> dict[str, Any]:
  """Distils, exports, writes plan and results, prints the table."""
  greedy = trainer.distill()
  state = trainer.state
  if state.best_decisions is None:
    said = task.evaluator.evaluate(
        task.graph, trainer.placement(greedy.decisions[0]))
    violations = [v for evaluation in (*(b.evaluation for b in baselines), said)
                  for v in evaluation.violations]
    raise errors.GdpError(f'{results_lib.defeat(violations)} The checkpoint in '
                          f'{options.model_dir} is kept.')
  export.export_policy(trainer.placer, str(options.model_dir / 'policy'), {
      'units': options.units, 'graph': task.graph.name,
      'graph_fingerprint': task.graph.fingerprint,
      'cluster': task.cluster.name, 'seed': options.seed})
  placement = trainer.best_placement()
  plans = options.model_dir / 'plans'
  plans.mkdir(exist_ok=True)
  plan.save(str(plans / f'{_file_name(task.graph.name)}.json'), task.graph,
            placement)
  found = baselines_lib.in_order(task.problem, baselines_lib.Result(
      'gdp', placement, task.evaluator.evaluate(task.graph, placement),
      state.total_evaluations, state.seconds))
  record = _record(options, task, baselines, found, trainer, greedy)
  record['seconds'] = round(time.monotonic() - start, 3)
  json_files.write_json(options.model_dir / 'results.json', record)
  item = record['graphs'][0]
  console.print(results_lib.table(item['name'], task.cluster.name,
                                  item['placers']))
  console.print(item['verdict'], highlight=False)
  return record


def _record(options, task, baselines, found, trainer, greedy
           ) -> dict[str, Any]:
  """The content of results.json."""
  state = trainer.state
  placers = {r.placer: results_lib.entry(r, options.seed)
             for r in (*baselines, found)}
  greedy_s = float(greedy.step_time_s[0])
  placers['gdp'] |= {
      'iterations': state.iteration,
      'found_by': state.best_origin,
      'evaluations_by_origin': state.evaluations,
      'policy_step_time_s': greedy_s if np.isfinite(greedy_s) else None,
      'curve': [list(pair) for pair in state.curve],
  }
  return {
      'schema': results_lib.SCHEMA,
      'versions': results_lib.versions(),
      'cluster': {'name': task.cluster.name,
                  'devices': list(found.placement.counts())},
      'config': options.config,
      'reward': options.reward,
      'seed': options.seed,
      'graphs': [{
          'name': task.graph.name,
          'fingerprint': task.graph.fingerprint,
          'num_ops': task.graph.num_ops,
          'num_groups': task.graph.num_groups,
          'num_units': len(task.features.op_types),
          'placers': placers,
          'verdict': results_lib.verdict(placers),
      }],
  }


def _file_name(name: str) -> str:
  return re.sub(r'[^\w.-]+', '_', name).strip('.') or 'graph'


class _Interrupt(contextlib.AbstractContextManager):
  """Remembers the first Ctrl-C; the second one ends the process at once.

  Attributes:
    pending: Whether there was one.
  """

  def __enter__(self):
    self.pending = False
    self._before = signal.signal(signal.SIGINT, self._remember)
    return self

  def __exit__(self, *unused):
    signal.signal(signal.SIGINT, self._before)

  def _remember(self, *unused):
    self.pending = True
    signal.signal(signal.SIGINT, signal.default_int_handler)
