"""Parts of a run of `gdp_train` that both kinds of network share."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import pathlib
import re
from typing import Any, Generic, Iterator, Mapping, Sequence, TypeVar

from gdp_grappler import errors
from gdp_grappler.cluster import plan
from gdp_grappler.problems import rewards
from placer_model.training import baselines as baselines_lib
from placer_model.training import checkpoints
from placer_model.training import interrupts
from placer_model.training import job_pricing
from placer_model.training import references
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
  }


@contextlib.contextmanager
def opened(
    options: task_lib.TrainOptions, identity: Mapping[str, Any],
    tasks: Sequence[task_lib.Task]) -> Iterator[job_pricing.Pricing | None]:
  """Holds the model directory and the processes of the graphs.

  Args:
    options: Options of the run.
    identity: The content of config.json.
    tasks: Tasks of the run.

  Yields:
    The team that prices placements in other processes, or None.

  Raises:
    GdpError: the model directory is that of another run, or cannot be written.
  """
  with contextlib.ExitStack() as stack:
    stack.enter_context(checkpoints.held(options.model_dir))
    if options.restart:
      checkpoints.discard(options.model_dir)
    checkpoints.claim(options.model_dir, identity)
    stack.enter_context(interrupts.naming_checkpoint(options.model_dir))
    for task in tasks:
      stack.enter_context(task.processes)
    yield references.pricing(options, tasks, stack)
