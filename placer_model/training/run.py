"""A run of `gdp_train` with the network of one forward pass.

The run reads graphs, prices baselines, trains the policy, and writes the
policy, plans and results into the model directory.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Sequence

import numpy as np
import rich.console

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.features import schema
from placer_model import config as config_lib
from placer_model import export
from placer_model import network as network_lib
from placer_model import run_folder
from placer_model.training import baselines as baselines_lib
from placer_model.training import batch as batch_lib
from placer_model.training import checkpoints
from placer_model.training import entrants as entrants_lib
from placer_model.training import environment as environment_lib
from placer_model.training import initial_weights
from placer_model.training import interrupts
from placer_model.training import job_pricing
from placer_model.training import optimizers as optimizers_lib
from placer_model.training import progress as progress_lib
from placer_model.training import references
from placer_model.training import results as results_lib
from placer_model.training import summaries
from placer_model.training import task as task_lib
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

# Fields of TrainConfig that may differ when a run is resumed.
_NOT_IDENTITY = ('iterations', 'checkpoint_iterations', 'checkpoint_s')
# Seconds that a fresh process takes to check the exported policy.
EXPORT_S = 20.
# Share of the time budget that distillation may take.
_DISTILL_SHARE = .1

_Entrant = entrants_lib.Entrant[trainer_lib.Trainer]


def train(every: Sequence[task_lib.TrainOptions], console: rich.console.Console,
          deadline: deadlines.Deadline | None = None,
          start_s: float | None = None) -> dict[str, Any]:
  """Trains a policy, exports it and reports the results.

  Args:
    every: Options of each graph; they differ only in graph and cluster.
    console: Console for progress and the table.
    deadline: Time by which the run has to end; by default
      `options.time_budget_s` from now.
    start_s: Start of the program, by the monotonic clock; by default now.

  Returns:
    The content of results.json.

  Raises:
    GdpError: the input is bad, the disk is full, or the model directory holds
      another run.
    MeasurementError: no step of the graph runs.
    interrupts.Interrupted: the user pressed Ctrl-C.
  """
  options = every[0]
  start_s = time.monotonic() if start_s is None else start_s
  deadline = deadline or deadlines.within(options.time_budget_s)
  exporting = deadline.earlier(EXPORT_S)
  learning = exporting.earlier(_DISTILL_SHARE * (options.time_budget_s or 0.))
  config = options.train_config()
  options = dataclasses.replace(options, iterations=config.iterations)
  network = initial_weights.network(options.init_policy, options.config,
                                    options.seed)
  tasks = [
      task_lib.load(one, progress_lib.teller(console), exporting)
      for one in every
  ]
  with entrants_lib.opened(options,
                           _identity(options, config, network.config, tasks),
                           tasks) as pricing:
    with interrupts.Interrupt() as interrupt:
      entrants = _entrants(options, config, network, tasks, learning, pricing)
      batch = batch_lib.Batch([e.trainer for e in entrants], config.iterations)
      store = checkpoints.Checkpoints(options.model_dir / 'checkpoints',
                                      batch.checkpoint())
      _learn(options, config, entrants, batch, store, interrupt, console,
             learning)
    return _conclude(options, entrants, batch, console, start_s, exporting)


def _identity(options: task_lib.TrainOptions, config: train_config.TrainConfig,
              placer_config: config_lib.PlacerConfig,
              tasks: Sequence[task_lib.Task]) -> dict[str, Any]:
  """Returns the content of config.json, which a resumed run has to match."""
  train = {
      key: value for key, value in dataclasses.asdict(config).items()
      if key not in _NOT_IDENTITY
  }
  return {
      **entrants_lib.identity(options, tasks),
      'units': options.kind_of_units,
      'init_policy': str(options.init_policy) if options.init_policy else None,
      'schema': schema.fingerprint(),
      'train': train,
      'placer': dataclasses.asdict(placer_config),
  }


def _entrants(options: task_lib.TrainOptions, config: train_config.TrainConfig,
              network: network_lib.PlacerNetwork,
              tasks: Sequence[task_lib.Task], deadline: deadlines.Deadline,
              pricing: job_pricing.Pricing | None) -> list[_Entrant]:
  """Returns all graphs with baselines, and trainers that share one network."""
  baselines = references.place_all(options, tasks, deadline, pricing)
  for task, results in zip(tasks, baselines):
    entrants_lib.check_that_steps_run(task, results)
  optimizers = optimizers_lib.Optimizers.make(config)
  return [
      _Entrant(
          label, task, results,
          _make_trainer(
              options, config, network, optimizers, task, results,
              pricing.evaluator(index) if pricing else task.problem.evaluator))
      for index, (label, task, results) in enumerate(
          zip(entrants_lib.labels(tasks), tasks, baselines))
  ]


def _make_trainer(options: task_lib.TrainOptions,
                  config: train_config.TrainConfig,
                  network: network_lib.PlacerNetwork,
                  optimizers: optimizers_lib.Optimizers, task: task_lib.Task,
                  baselines: tuple[baselines_lib.Result, ...],
                  evaluator: evaluator_lib.Evaluator) -> trainer_lib.Trainer:
  environment = environment_lib.Environment(task.graph, task.cluster, evaluator,
                                            task.units, task.features)
  starts = np.stack([environment.decisions(b.placement) for b in baselines])
  return trainer_lib.Trainer(
      environment, network, network_lib.features_to_tensors(task.features),
      config, options.seed, starts,
      baselines_lib.reference_s([b.evaluation for b in baselines],
                                task.op_seconds), optimizers)


def _learn(options: task_lib.TrainOptions, config: train_config.TrainConfig,
           entrants: Sequence[_Entrant], batch: batch_lib.Batch,
           store: checkpoints.Checkpoints, interrupt: interrupts.Interrupt,
           console: rich.console.Console, deadline: deadlines.Deadline) -> None:
  """Runs warm-up and iterations until all are done, or time or Ctrl-C stops."""
  saver = checkpoints.Saver(store, lambda: batch.iteration,
                            config.checkpoint_iterations, config.checkpoint_s)
  tell = progress_lib.teller(console)
  if store.restore(tell):
    tell(f'Resuming after iteration {batch.iteration}.')
  else:
    saver.save()  # Reports early that nothing can be written.

  def stopped() -> bool:
    return interrupt.pending or deadline.passed

  with progress_lib.Progress(console, batch.iteration, batch.iterations,
                             deadline.left_s) as shown:
    # The first parts price the baselines. Without prices there is nothing to
    # report.
    for trainer in batch.warm_up():
      shown.show_warm_up(trainer.state)
      saver.save_if_due()
      if stopped() and batch.is_priced:
        break
    events = [
        summaries.Summaries(
            options.model_dir / 'tensorboard'
            / entrants_lib.file_name(entrant.label, ''), entrant.task,
            entrant.trainer) for entrant in entrants
    ]
    start_s = time.monotonic()
    while not stopped() and (turn := batch.next()) is not None:
      trainer = batch.trainers[turn]
      report = trainer.step(max(trainer.share, deadline.spent(start_s)))
      shown.show(dataclasses.replace(report, iteration=batch.iteration),
                 entrants[turn].label)
      events[turn].write(report)
      saver.save_if_due()
    for writer in events:
      writer.close()
  saver.save()
  if deadline.passed and batch.iteration < batch.iterations:
    tell(f'--time_budget_s={options.time_budget_s:g} ended learning after '
         f'{batch.iteration} of {batch.iterations} iterations.')
  if interrupt.pending:
    raise interrupts.Interrupted(
        f'interrupted after iteration {batch.iteration}; checkpoint '
        f'written. Run {run_folder.SAME_COMMAND} to go on from there.')


def _conclude(options: task_lib.TrainOptions, entrants: Sequence[_Entrant],
              batch: batch_lib.Batch, console: rich.console.Console,
              start_s: float, deadline: deadlines.Deadline) -> dict[str, Any]:
  """Distils, exports, writes plans and results, and prints the table."""
  tell = progress_lib.teller(console)
  progress.doing('making the policy say the best placement')
  said = [
      trials.decisions[0] for trials in batch.finish(lambda: deadline.passed)
  ]
  if all(e.trainer.state.best_decisions is None for e in entrants):
    raise errors.GdpError(
        results_lib.why_none_is_valid(_violations(entrants[0], said[0]))
        + f' The checkpoint in {options.model_dir} is kept.')
  export.export_policy(
      batch.placer, str(options.model_dir / 'policy'),
      {'units': options.kind_of_units, **entrants_lib.about(options, entrants)})
  written = entrants_lib.write_plans(options.model_dir, entrants)
  graphs = [_record(options, e, d, deadline) for e, d in zip(entrants, said)]
  return entrants_lib.publish(options, graphs, written[0], start_s, tell)


def _violations(entrant: _Entrant,
                said: np.ndarray) -> list[placement_lib.Violation]:
  """Returns violations of the baselines and of the policy's placement."""
  task = entrant.task
  last = task.evaluator.evaluate(task.graph, entrant.trainer.placement(said))
  return [
      v for evaluation in (*(b.evaluation for b in entrant.baselines), last)
      for v in evaluation.violations
  ]


def _record(options: task_lib.TrainOptions, entrant: _Entrant, said: np.ndarray,
            deadline: deadlines.Deadline) -> dict[str, Any]:
  """Returns a graph's part of results.json.

  Args:
    options: Options of the run.
    entrant: The graph.
    said: int [M], likeliest decisions of the policy.
    deadline: Time until which control edges may be computed.
  """
  task, trainer, state = entrant.task, entrant.trainer, entrant.trainer.state
  best = state.best_decisions
  placement = trainer.placement(said if best is None else best)
  found = baselines_lib.in_order(
      task.graph, task.evaluator, task.simulator,
      baselines_lib.Result(results_lib.TRAINED, placement,
                           task.evaluator.evaluate(task.graph, placement),
                           state.total_evaluations, state.seconds,
                           options.seed), deadline)
  every = *entrant.baselines, found
  placers = {result.placer: results_lib.entry(result) for result in every}
  found_by = baselines_lib.found_by(state.best_origin, best, trainer.baselines,
                                    entrant.baselines)
  placers[results_lib.TRAINED] |= {
      'iterations': state.iteration,
      'found_by': found_by,
      'evaluations_by_origin': state.evaluations,
      'policy_step_time_s': _step_s(entrant, said),
      'policy_best_step_time_s': _step_s(entrant, state.own_decisions),
      'imitates': options.train_config().imitates,
      'curve': [list(pair) for pair in state.curve],
  }
  return entrants_lib.graph_record(task, placers, trainer.num_units,
                                   options.reward)


def _step_s(entrant: _Entrant, decisions: np.ndarray | None) -> float | None:
  """Returns the step of int [M] decisions; None if it does not run."""
  if decisions is None:
    return None
  task = entrant.task
  found = task.evaluator.evaluate(task.graph,
                                  entrant.trainer.placement(decisions))
  return found.step_time_s if found.valid else None
