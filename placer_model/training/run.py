"""gdp_train's journey: a graph in, a model directory out."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
import signal
import time
from typing import Any

import numpy as np
import rich.console

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import plan
from gdp_grappler.evaluation import until
from gdp_grappler.features import schema
from gdp_grappler.problems import rewards
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model.training import baselines as baselines_lib
from placer_model.training import checkpoints
from placer_model.training import environment as environment_lib
from placer_model.training import json_files
from placer_model.training import progress as progress_lib
from placer_model.training import results as results_lib
from placer_model.training import run_state
from placer_model.training import summaries
from placer_model.training import task as task_lib
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

# Fields of TrainConfig that may change when a run goes on.
_NOT_IDENTITY = ('iterations', 'checkpoint_iterations', 'checkpoint_s')
# Of the time budget: what a fresh process takes to check the exported policy,
# what distillation may take, and what the baselines may where steps are run.
_EXPORT_S, _DISTILL_SHARE, _BASELINES_SHARE = 20., .1, .4


class Interrupted(Exception):
  """Ctrl-C; a checkpoint has been written."""


def train(options: task_lib.Options, console: rich.console.Console,
          deadline: deadlines.Deadline | None = None) -> dict[str, Any]:
  """Trains, exports and reports; returns the content of results.json.

  Args:
    options: What to do.
    console: Where progress and the table go.
    deadline: When all of it has to be done; by default `options.time_budget_s`
      from now.

  Raises:
    GdpError: bad input, a full disk, or a model directory of another run.
    MeasurementError: no step of the graph runs.
    Interrupted: Ctrl-C.
  """
  start = time.monotonic()
  exporting = (deadline or
               deadlines.within(options.time_budget_s)).earlier(_EXPORT_S)
  learning = exporting.earlier(_DISTILL_SHARE * (options.time_budget_s or 0.))
  config = options.train_config()
  placer_config = config_lib.preset(options.config).replace(seed=options.seed)
  task = task_lib.load(
      options, lambda line: console.print(line, highlight=False, markup=False,
                                          soft_wrap=True), exporting)
  with contextlib.ExitStack() as stack:
    stack.enter_context(checkpoints.held(options.model_dir))
    if options.restart:
      checkpoints.discard(options.model_dir)
    checkpoints.claim(options.model_dir,
                      _identity(options, config, placer_config, task))
    stack.enter_context(task.processes)
    with _Interrupt() as interrupt:
      baselines = _baselines(task, learning)
      _check_that_steps_run(task, baselines)
      trainer = _make_trainer(options, config, placer_config, task, baselines)
      store = checkpoints.Checkpoints(options.model_dir / 'checkpoints',
                                      trainer.checkpoint())
      _learn(options, config, trainer, store, interrupt, console, learning)
    return _conclude(options, task, baselines, trainer, console, start,
                     exporting)


def _baselines(
    task: task_lib.Task,
    deadline: deadlines.Deadline) -> tuple[baselines_lib.Result, ...]:
  """Placers that try many placements leave some of the time to the policy."""
  problem = task.problem
  if not problem.evaluator.simulated:
    problem = dataclasses.replace(
        problem, evaluator=until.Until(problem.evaluator,
                                       deadline.after(_BASELINES_SHARE)))
  return baselines_lib.place_all(problem, task.evaluator, task.simulator)


def _identity(options: task_lib.Options, config: train_config.TrainConfig,
              placer_config: config_lib.PlacerConfig,
              task: task_lib.Task) -> dict[str, Any]:
  """All that has to be equal for a run to go on; what config.json holds."""
  train = {
      key: value for key, value in dataclasses.asdict(config).items()
      if key not in _NOT_IDENTITY
  }
  return {
      'graph': {'name': task.graph.name, 'fingerprint': task.graph.fingerprint},
      'cluster':
          json.loads(task.cluster.to_json()),
      'reward':
          options.reward,
      'units':
          options.units,
      # A stopwatch does not ask for them.
      'costs':
          None if options.reward == rewards.MEASURED else hashlib.sha256(
              task.op_seconds.tobytes()).hexdigest(),
      'seed':
          options.seed,
      'init_policy':
          str(options.init_policy) if options.init_policy else None,
      'schema':
          schema.fingerprint(),
      'train':
          train,
      'placer':
          dataclasses.asdict(placer_config),
  }


def _make_trainer(
    options: task_lib.Options, config: train_config.TrainConfig,
    placer_config: config_lib.PlacerConfig, task: task_lib.Task,
    baselines: tuple[baselines_lib.Result, ...]) -> trainer_lib.Trainer:
  network = network_lib.PlacerNetwork(placer_config)
  if options.init_policy:
    checkpoints.load_placer(options.init_policy / 'checkpoints', network)
  environment = environment_lib.Environment(task.graph, task.cluster,
                                            task.problem.evaluator, task.units,
                                            task.features)
  starts = np.stack([environment.decisions(b.placement) for b in baselines])
  return trainer_lib.Trainer(
      environment, network, network_lib.features_to_tensors(task.features),
      config, options.seed, starts,
      baselines_lib.reference_s(baselines, task.op_seconds))


def _check_that_steps_run(task: task_lib.Task,
                          baselines: tuple[baselines_lib.Result, ...]) -> None:
  """Ends a run from which nothing could be learned."""
  failure = results_lib.never_runs([b.evaluation for b in baselines])
  if failure is not None:
    raise errors.MeasurementError(
        f'Steps of "{task.graph.name}" fail in all {len(baselines)} placements '
        f'to start from: {failure.message.rstrip(". ")}. Mend that, or use '
        '--reward=simulated.')


def _learn(options: task_lib.Options, config: train_config.TrainConfig,
           trainer: trainer_lib.Trainer, store: checkpoints.Checkpoints,
           interrupt: _Interrupt, console: rich.console.Console,
           deadline: deadlines.Deadline) -> None:
  """Warm-up and iterations until number, time or Ctrl-C ends them."""
  saver = _Saver(store, trainer.state, config)
  if store.restore(lambda line: console.print(line, highlight=False, markup=
                                              False, soft_wrap=True)):
    console.print(f'Resuming after iteration {trainer.state.iteration}.',
                  highlight=False)
  else:
    saver.save()  # Whoever cannot write should know before the warm-up.

  def stopped() -> bool:
    return interrupt.pending or deadline.passed

  with progress_lib.Progress(console, trainer.state.iteration,
                             config.iterations, deadline.left_s) as progress:
    # The first part prices the baselines: without it there is nothing to tell.
    for _ in trainer.warm_up():
      progress.show_warm_up(trainer.state)
      saver.save_if_due()
      if stopped():
        break
    events = summaries.Summaries(options.model_dir / 'tensorboard')
    while trainer.state.iteration < config.iterations and not stopped():
      report = trainer.step()
      progress.show(report)
      events.write(report)
      saver.save_if_due()
    events.close()
  saver.save()
  if deadline.passed and trainer.state.iteration < config.iterations:
    console.print(
        f'--time_budget_s={options.time_budget_s:g} ended learning after '
        f'{trainer.state.iteration} of {config.iterations} iterations.',
        highlight=False)
  if interrupt.pending:
    raise Interrupted(
        f'interrupted after iteration {trainer.state.iteration}; checkpoint '
        'written. Run the same command again to go on from there.')


class _Saver:
  """Decides when to write a checkpoint."""

  def __init__(self, store: checkpoints.Checkpoints, state: run_state.RunState,
               config: train_config.TrainConfig) -> None:
    self._store, self._state, self._config = store, state, config
    self._saved_s = time.monotonic()
    self._saved_iteration = state.iteration

  def save_if_due(self) -> None:
    """Saves if enough time or enough iterations have passed."""
    age_s = time.monotonic() - self._saved_s
    new = self._state.iteration - self._saved_iteration
    if (age_s >= self._config.checkpoint_s or
        new >= self._config.checkpoint_iterations):
      self.save()

  def save(self) -> None:
    """Saves."""
    self._store.save(self._state.iteration)
    self._saved_s = time.monotonic()
    self._saved_iteration = self._state.iteration


def _conclude(options: task_lib.Options, task: task_lib.Task,
              baselines: tuple[baselines_lib.Result, ...],
              trainer: trainer_lib.Trainer, console: rich.console.Console,
              start: float, deadline: deadlines.Deadline) -> dict[str, Any]:
  """Distils, exports, writes plan and results, prints the table."""
  greedy = trainer.distill(lambda: deadline.passed)
  state = trainer.state
  if state.best_decisions is None:
    said = task.evaluator.evaluate(task.graph,
                                   trainer.placement(greedy.decisions[0]))
    violations = [
        v for evaluation in (*(b.evaluation for b in baselines), said)
        for v in evaluation.violations
    ]
    raise errors.GdpError(f'{results_lib.defeat(violations)} The checkpoint in '
                          f'{options.model_dir} is kept.')
  export.export_policy(
      trainer.placer, str(options.model_dir / 'policy'), {
          'units': options.units, 'graph': task.graph.name,
          'graph_fingerprint': task.graph.fingerprint,
          'cluster': task.cluster.name, 'seed': options.seed
      })
  placement = trainer.best_placement()
  plans = options.model_dir / 'plans'
  plans.mkdir(exist_ok=True)
  plan.save(str(plans / f'{_file_name(task.graph.name)}.json'), task.graph,
            placement)
  found = baselines_lib.in_order(
      task.graph, task.evaluator, task.simulator,
      baselines_lib.Result('gdp', placement,
                           task.evaluator.evaluate(task.graph, placement),
                           state.total_evaluations, state.seconds))
  record = _record(options, task, baselines, found, trainer, greedy)
  record['seconds'] = round(time.monotonic() - start, 3)
  json_files.write_json(options.model_dir / 'results.json', record)
  item = record['graphs'][0]
  console.print(
      results_lib.table(item['name'], task.cluster.name, item['placers'],
                        options.reward))
  console.print(item['verdict'], highlight=False)
  return record


def _record(options: task_lib.Options, task: task_lib.Task,
            baselines: tuple[baselines_lib.Result, ...],
            found: baselines_lib.Result, trainer: trainer_lib.Trainer,
            greedy: environment_lib.Trials) -> dict[str, Any]:
  """The content of results.json."""
  state = trainer.state
  placers = {
      r.placer: results_lib.entry(r, options.seed) for r in (*baselines, found)
  }
  said = task.evaluator.evaluate(task.graph,
                                 trainer.placement(greedy.decisions[0]))
  placers['gdp'] |= {
      'iterations': state.iteration,
      'found_by': state.best_origin,
      'evaluations_by_origin': state.evaluations,
      'policy_step_time_s': said.step_time_s if said.valid else None,
      'curve': [list(pair) for pair in state.curve],
  }
  return {
      'schema':
          results_lib.SCHEMA,
      'versions':
          results_lib.versions(),
      'cluster': {
          'name': task.cluster.name, 'devices': list(found.placement.counts())
      },
      'config':
          options.config,
      'reward':
          options.reward,
      'seed':
          options.seed,
      'graphs': [{
          'name': task.graph.name,
          'fingerprint': task.graph.fingerprint,
          'num_ops': task.graph.num_ops,
          'num_groups': task.graph.num_groups,
          'num_units': len(task.features.op_types),
          'placers': placers,
          'verdict': results_lib.verdict(placers, options.reward),
      }],
  }


def _file_name(name: str) -> str:
  return re.sub(r'[^\w.-]+', '_', name).strip('.') or 'graph'


class _Interrupt(contextlib.AbstractContextManager['_Interrupt']):
  """Remembers the first Ctrl-C; the second one ends the process at once.

  Attributes:
    pending: Whether there was one.
  """

  def __enter__(self) -> _Interrupt:
    self.pending = False
    self._before = signal.signal(signal.SIGINT, self._remember)
    return self

  def __exit__(self, *unused: object) -> None:
    signal.signal(signal.SIGINT, self._before)

  def _remember(self, *unused: object) -> None:
    self.pending = True
    signal.signal(signal.SIGINT, signal.default_int_handler)
