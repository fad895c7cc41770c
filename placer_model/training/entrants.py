"""Parts of a run of `gdp_train` that both kinds of network share."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import pathlib
import re
import time
from typing import Any, Callable, Generic, Iterator, Mapping, Sequence, TypeVar

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import plan
from gdp_grappler.problems import rewards
from gdp_grappler.processes import machines as machines_lib
from placer_model import run_folder
from placer_model.training import baselines as baselines_lib
from placer_model.training import checkpoints
from placer_model.training import interrupts
from placer_model.training import job_pricing
from placer_model.training import json_files
from placer_model.training import results as results_lib
from placer_model.training import task as task_lib

_Trainer = TypeVar('_Trainer')


@dataclasses.dataclass(frozen=True, eq=False)
class Entrant(Generic[_Trainer]):
  """A graph of the run, with its baselines and its trainer.

  Attributes:
    label: Label that tells the graph from the others; '' for a single graph.
    task: The graph and its cluster.
    baselines: Placements to compare with.
    trainer: Trainer; all trainers of a run share one network.
  """

  label: str
  task: task_lib.Task
  baselines: tuple[baselines_lib.Result, ...]
  trainer: _Trainer


def labels(tasks: Sequence[task_lib.Task]) -> list[str]:
  """Returns distinct labels of tasks; '' for a single task.

  Args:
    tasks: Tasks of a run.
  """
  if len(tasks) == 1:
    return ['']
  labels = [f'{task.graph.name}@{task.cluster.name}' for task in tasks]
  return [
      f'{label}#{labels[:row].count(label)}' if label in labels[:row] else label
      for row, label in enumerate(labels)
  ]


def write_plans(model_dir: pathlib.Path,
                entrants: Sequence[Entrant[Any]]) -> list[pathlib.Path]:
  """Writes the best placement of each graph that has one; returns the files.

  Args:
    model_dir: Model directory of the run.
    entrants: Graphs of the run.

  Raises:
    GdpError: a file cannot be written.
  """
  folder, written = model_dir / 'plans', []
  folder.mkdir(exist_ok=True)
  for entrant in entrants:
    if entrant.trainer.state.best_decisions is None:
      continue
    name = file_name(entrant.label or entrant.task.graph.name, 'graph')
    written.append(folder / f'{name}.json')
    plan.save(str(written[-1]), entrant.task.graph,
              entrant.trainer.best_placement())
  return written


def about(options: task_lib.TrainOptions,
          entrants: Sequence[Entrant[Any]]) -> dict[str, Any]:
  """Returns what the description of a policy says about its run.

  Args:
    options: Options of the run.
    entrants: Graphs of the run.
  """
  tasks = [entrant.task for entrant in entrants]
  return {
      'graph': ', '.join(task.graph.name for task in tasks),
      'graph_fingerprint': ', '.join(task.graph.fingerprint for task in tasks),
      'cluster': ', '.join(task.cluster.name for task in tasks),
      'seed': options.seed
  }


def graph_record(task: task_lib.Task, placers: Mapping[str, Mapping[str, Any]],
                 num_units: int, reward: str) -> dict[str, Any]:
  """Returns a graph's part of results.json.

  Args:
    task: The graph and its cluster.
    placers: Name to `results.entry`.
    num_units: Number of units that the network decides on.
    reward: One of `rewards.ALL`.
  """
  return {
      'name': task.graph.name, 'cluster': {
          'name': task.cluster.name, 'devices': list(task.cluster.device_labels)
      }, 'fingerprint': task.graph.fingerprint, 'num_ops': task.graph.num_ops,
      'num_groups': task.graph.num_groups, 'num_units': num_units,
      'placers': placers, 'verdict': results_lib.verdict(placers, reward)
  }


def publish(options: task_lib.TrainOptions, graphs: Sequence[Mapping[str, Any]],
            plan_path: pathlib.Path, start_s: float, tell: Callable[[str],
                                                                    None],
            further: Mapping[str, Any] | None = None) -> dict[str, Any]:
  """Writes results.json, prints tables and commands, returns its content.

  Args:
    options: Options of the run.
    graphs: Result of `graph_record` for each graph.
    plan_path: A plan that the run has written.
    start_s: Start of the program, by the monotonic clock.
    tell: Prints a text.
    further: Fields that only one kind of network has.

  Raises:
    GdpError: the file cannot be written.
  """
  record = {
      'schema': results_lib.SCHEMA, 'versions': results_lib.versions(),
      'command': options.command, 'network': options.network,
      'config': options.config, 'reward': options.reward, 'seed': options.seed,
      'iterations': options.iterations, 'time_budget_s': options.time_budget_s,
      **(further or {}), 'graphs': list(graphs),
      'seconds': round(time.monotonic() - start_s, 3)
  }
  json_files.write_json(options.model_dir / 'results.json', record)
  progress.idle()
  graph = options.request().typed() if len(graphs) == 1 else 'GRAPH'
  for text in (*results_lib.tables(record),
               results_lib.next_steps(record, options.model_dir, graph,
                                      plan_path)):
    tell(text)
  return record


def file_name(name: str, nameless: str) -> str:
  """Returns a name reduced to the characters of a file name.

  Args:
    name: Any text.
    nameless: Result if no character is left.
  """
  return re.sub(r'[^\w.-]+', '_', name).strip('.') or nameless


def check_that_steps_run(task: task_lib.Task,
                         baselines: tuple[baselines_lib.Result, ...]) -> None:
  """Raises an error if no step runs, so that nothing can be learned.

  Args:
    task: Task of the run.
    baselines: Baselines, whose steps were tried.

  Raises:
    MeasurementError: the steps of all baselines fail, for another reason than
      memory.
  """
  failure = results_lib.never_runs([b.evaluation for b in baselines])
  if failure is not None:
    raise errors.MeasurementError(
        f'Steps of "{task.graph.name}" fail in all {len(baselines)} placements '
        f'to start from: {failure.message.rstrip(". ")}. Mend that, or use '
        '--reward=simulated.')


def identity(options: task_lib.TrainOptions,
             tasks: Sequence[task_lib.Task]) -> dict[str, Any]:
  """Returns what a resumed run has to have in common with the first.

  Args:
    options: Options of the run.
    tasks: Tasks of the run.

  Returns:
    The part of config.json that does not depend on the kind of network.
  """
  return {
      'graph': [{
          'name': task.graph.name, 'fingerprint': task.graph.fingerprint
      } for task in tasks],
      'cluster': [json.loads(task.cluster.to_json()) for task in tasks],
      'reward': options.reward,
      # Measured steps do not depend on predicted costs.
      'costs': [
          None if options.reward == rewards.MEASURED else hashlib.sha256(
              task.op_seconds.tobytes()).hexdigest() for task in tasks
      ],
      'seed': options.seed,
      'searches': options.searches,
      'may_round': options.may_round,
  }


@contextlib.contextmanager
def opened(
    options: task_lib.TrainOptions, identity: Mapping[str, Any],
    tasks: Sequence[task_lib.Task]) -> Iterator[job_pricing.Pricing | None]:
  """Locks the model directory; on exit, ends the processes of the tasks.

  Args:
    options: Options of the run.
    identity: The content of config.json.
    tasks: Tasks of the run.

  Yields:
    The team that prices placements on a Ray cluster; None without one.

  Raises:
    GdpError: the model directory is that of another run, or cannot be written;
      or there is no such cluster.
  """
  with contextlib.ExitStack() as stack:
    stack.enter_context(run_folder.held(options.model_dir, '--model_dir'))
    if options.restart:
      checkpoints.discard(options.model_dir)
    checkpoints.claim(options.model_dir, identity)
    stack.enter_context(interrupts.naming_checkpoint(options.model_dir))
    for task in tasks:
      stack.enter_context(task.processes)
    pricing = None
    if options.ray is not None:
      machines = stack.enter_context(machines_lib.of(options.ray, None))
      pricing = stack.enter_context(job_pricing.Pricing(machines, tasks))
    yield pricing
