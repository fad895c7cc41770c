"""A run of `gdp_train` with the move network.

The run reads graphs, prices drafts, lets the default placer search, trains the
network, and writes the policy, plans and results into the model directory.
"""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any, Sequence

import rich.console
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.placers.policy import move_folder
from gdp_grappler.placers.search.moves import move_network
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.problems import rewards
from placer_model import run_folder
from placer_model.training import baselines as baselines_lib
from placer_model.training import checkpoints
from placer_model.training import entrants as entrants_lib
from placer_model.training import interrupts
from placer_model.training import job_pricing
from placer_model.training import network_kinds
from placer_model.training import progress as progress_lib
from placer_model.training import references
from placer_model.training import summaries
from placer_model.training import task as task_lib
from placer_model.training.moves import move_config
from placer_model.training.moves import move_learner
from placer_model.training.moves import move_report
from placer_model.training.moves import move_search
from placer_model.training.moves import move_trainer

# Fields of MoveConfig that may differ when a run is resumed.
_NOT_IDENTITY = ('iterations', 'checkpoint_iterations', 'checkpoint_s',
                 'search_trials')
# Seconds of the time budget reserved for writing files and the table.
_EXPORT_S = 2.
# The stages of a run follow each other. Each gets a share of the time that is
# left when it begins.
# Share for all baselines, and again for the drafts of each graph.
_BASELINES_SHARE = .05
# Share for the default placer.
_GDP_SHARE = .5
# Share for training.
_LEARN_SHARE = .4
# Share for more training, if training has found a faster placement than the
# default placer.
_AHEAD_SHARE = .5
# Share for the search with the trained network. In the rest of the time,
# control edges are computed for the table.
_SEARCH_SHARE = .95


def train(every: Sequence[task_lib.TrainOptions], console: rich.console.Console,
          deadline: deadlines.Deadline | None = None,
          start_s: float | None = None) -> dict[str, Any]:
  """Trains the move network, exports it and reports the results.

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
  deadline = (deadline or
              deadlines.within(options.time_budget_s)).earlier(_EXPORT_S)
  config, network = config_of(options), first_network(options.init_policy)
  options = dataclasses.replace(options, iterations=config.iterations)
  tell = progress_lib.teller(console)
  tasks = [task_lib.load(one, tell, deadline) for one in every]
  with entrants_lib.opened(options, _identity(options, config, network, tasks),
                           tasks) as pricing:
    with interrupts.Interrupt() as interrupt:
      run = _Run(options, config, network, tasks, pricing, console, interrupt,
                 deadline)
      run.prepare()
      said = run.learn()
    return move_report.conclude(options, run.entrants, network,
                                run.final_network(), said, console, start_s,
                                deadline)


def config_of(options: task_lib.TrainOptions) -> move_config.MoveConfig:
  """Returns the settings of a run, reduced if steps are not simulated.

  Args:
    options: Options of the run, whose values take precedence.
  """
  config = move_config.MoveConfig()
  if options.reward != rewards.SIMULATED:
    config = move_config.for_measuring(config)
  changes = {
      name: getattr(options, name) for name in ('iterations', 'rollouts')
      if getattr(options, name) is not None
  }
  return dataclasses.replace(config, **changes)


def first_network(start: pathlib.Path | None) -> move_network.MoveNetwork:
  """Returns the initial network of a run.

  Args:
    start: Folder of a move network, or of a finished run; None for the network
      that ships.

  Raises:
    PolicyMismatchError: the policy is damaged, or has other features.
    GdpError: there is no such policy.
  """
  if start is None:
    return shipped_moves.network()
  for folder in (start, start / 'policy'):
    if move_folder.is_here(folder):
      return move_folder.load(folder)
  raise errors.GdpError(
      f'--init_policy={start} holds no move network. Give "shipped", the '
      'folder "policy" or the --model_dir of a finished run, or '
      '--network=one_shot for a policy that places in one forward pass.')


def _identity(options: task_lib.TrainOptions, config: move_config.MoveConfig,
              network: move_network.MoveNetwork,
              tasks: Sequence[task_lib.Task]) -> dict[str, Any]:
  """Returns the content of config.json, which a resumed run has to match."""
  train_fields = {
      key: value for key, value in dataclasses.asdict(config).items()
      if key not in _NOT_IDENTITY
  }
  return {
      network_kinds.FIELD: network_kinds.MOVES,
      **entrants_lib.identity(options, tasks),
      'init_policy': network.digest,
      'train': train_fields,
  }


class _Run:
  """A run, in the order `prepare`, `learn`, `final_network`.

  Attributes:
    entrants: Graphs of the run.
  """

  def __init__(self, options: task_lib.TrainOptions,
               config: move_config.MoveConfig,
               network: move_network.MoveNetwork,
               tasks: Sequence[task_lib.Task],
               pricing: job_pricing.Pricing | None,
               console: rich.console.Console, interrupt: interrupts.Interrupt,
               deadline: deadlines.Deadline) -> None:
    self._options, self._config, self._start = options, config, network
    self._console, self._interrupt = console, interrupt
    self._deadline = deadline
    self._searches = options.reward == rewards.SIMULATED
    self._tell = progress_lib.teller(console)
    self._learner = move_learner.MoveLearner(network, config)
    early = deadline.after(_BASELINES_SHARE)
    found = references.place_all(options, tasks, early, pricing)
    self.entrants = [
        self._entrant(number, label, task, results, pricing)
        for number, (
            label, task,
            results) in enumerate(zip(entrants_lib.labels(tasks), tasks, found))
    ]
    self._trainers = [entrant.trainer for entrant in self.entrants]
    self._store = checkpoints.Checkpoints(options.model_dir / 'checkpoints',
                                          self._checkpoint())
    self._saver = checkpoints.Saver(self._store, lambda: self.iteration,
                                    config.checkpoint_iterations,
                                    config.checkpoint_s)

  @property
  def iteration(self) -> int:
    """Number of iterations done, of all graphs together."""
    return sum(trainer.state.iteration for trainer in self._trainers)

  @property
  def iterations(self) -> int:
    """Number of iterations at the end of the run, of all graphs together."""
    return self._config.iterations * len(self._trainers)

  def prepare(self) -> None:
    """Restores a checkpoint, or prices baselines, drafts and `gdp`'s result."""
    if self._store.restore(self._tell):
      self._tell(f'Resuming after iteration {self.iteration}.')
    else:
      self._saver.save()  # Reports early that nothing can be written.
    for entrant, trainer in zip(self.entrants, self._trainers):
      if not trainer.has_begun:
        progress.doing('pricing drafts')
        trainer.begin([b.placement for b in entrant.baselines],
                      self._deadline.after(_BASELINES_SHARE))
        self._saver.save()
    for left, (entrant, trainer) in zip(range(len(self.entrants), 0, -1),
                                        zip(self.entrants, self._trainers)):
      if not len(trainer.state.by_gdp) and not self._stopped():
        move_search.ask_gdp(trainer, entrant.task.simulator,
                            self._deadline.after(_GDP_SHARE / left).left_s)
        self._saver.save()

  def learn(self) -> list[str]:
    """Runs iterations until all are done, or time or Ctrl-C stops them.

    After its first share of the time (`_LEARN_SHARE`), training goes on only if
    it has found a faster placement than `gdp`.

    Returns:
      For each graph, a text on whether training beat `gdp`.
    """
    self._iterate(self._deadline.after(_LEARN_SHARE))
    if self._is_ahead():
      self._iterate(self._deadline.after(_AHEAD_SHARE))
    self._saver.save()
    if self._interrupt.pending:
      raise interrupts.Interrupted(
          f'interrupted after iteration {self.iteration}; checkpoint '
          f'written. Run {run_folder.SAME_COMMAND} to go on from there.')
    said = [
        move_report.verdict(entrant, self._searches)
        for entrant in self.entrants
    ]
    for text in said:
      self._tell(text)
    return said

  def final_network(self) -> move_report.Learned:
    """Searches with the better network; returns the network to export."""
    learned = self._judged(self._learner.network())
    if self._searches:
      for left, trainer in zip(range(len(self._trainers), 0, -1),
                               self._trainers):
        move_search.search_on(trainer, learned.network,
                              self._config.search_trials,
                              self._deadline.after(_SEARCH_SHARE / left).left_s)
    return learned

  def _entrant(self, number: int, label: str, task: task_lib.Task,
               results: tuple[baselines_lib.Result, ...],
               pricing: job_pricing.Pricing | None) -> move_report.Entrant:
    entrants_lib.check_that_steps_run(task, results)
    problem = task.problem
    if pricing:
      problem = problem.priced_by(pricing.evaluator(number))
    trainer = move_trainer.MoveTrainer(problem, self._learner, self._config,
                                       self._options.seed)
    return move_report.Entrant(label, task, results, trainer)

  def _checkpoint(self) -> tf.train.Checkpoint:
    """Returns all state that a resumed run needs in order to go on exactly."""
    learner = self._learner
    return tf.train.Checkpoint(
        placer=learner.layers, ppo_optimizer=learner.ppo_optimizer,
        critic_optimizer=learner.critic_optimizer,
        states=[trainer.state for trainer in self._trainers])

  def _iterate(self, deadline: deadlines.Deadline) -> None:
    with progress_lib.Progress(self._console, self.iteration, self.iterations,
                               deadline.left_s) as shown:
      events = [
          summaries.Summaries(
              self._options.model_dir / 'tensorboard'
              / entrants_lib.file_name(entrant.label, ''), entrant.task,
              entrant.trainer) for entrant in self.entrants
      ]
      while (not self._stopped() and not deadline.passed and
             self.iteration < self.iterations):
        turn = min(range(len(self._trainers)),
                   key=lambda k: self._trainers[k].state.iteration)
        report = self._trainers[turn].step(deadline)
        shown.show_text(self.iteration, report.evaluations,
                        move_report.line(self.entrants[turn], report))
        events[turn].write(report)
        self._saver.save_if_due()
      for writer in events:
        writer.close()

  def _judged(self, network: move_network.MoveNetwork) -> move_report.Learned:
    """Returns the trained network, or the initial one if that is not worse.

    Without a test of both, it returns the trained network.
    """
    if not self._config.skill_drafts:
      return move_report.Learned(network, None, None)
    progress.doing('comparing the weights with those of the start')
    before, after = (sum(trainer.skill(weights)
                         for trainer in self._trainers) / len(self._trainers)
                     for weights in (self._start, network))
    return move_report.Learned(network if after > before else self._start,
                               before, after)

  def _is_ahead(self) -> bool:
    return any(move_report.is_ahead(entrant) for entrant in self.entrants)

  def _stopped(self) -> bool:
    return self._interrupt.pending or self._deadline.passed
