"""What each run of `gdp_train` has, whichever network learns in it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
from typing import Any, Generic, Iterator, Mapping, Sequence, TypeVar

from gdp_grappler import errors
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
  """A graph of the run, what it is compared with, and what learns from it.

  Attributes:
    label: Tells it from the others; '' where there are none.
    task: The graph on its cluster.
    baselines: Placements to compare with.
    trainer: Shares its network with the others.
  """

  label: str
  task: task_lib.Task
  baselines: tuple[baselines_lib.Result, ...]
  trainer: _Trainer


def labels(tasks: Sequence[task_lib.Task]) -> list[str]:
  """Different labels of tasks; '' where there is one task.

  Args:
    tasks: Of a run.
  """
  if len(tasks) == 1:
    return ['']
  labels = [f'{task.graph.name}@{task.cluster.name}' for task in tasks]
  return [
      f'{label}#{labels[:row].count(label)}' if label in labels[:row] else label
      for row, label in enumerate(labels)
  ]


def file_name(name: str, nameless: str) -> str:
  """What of a name a file's name may hold.

  Args:
    name: Any text.
    nameless: Instead, if that is nothing.
  """
  return re.sub(r'[^\w.-]+', '_', name).strip('.') or nameless


def check_that_steps_run(task: task_lib.Task,
                         baselines: tuple[baselines_lib.Result, ...]) -> None:
  """Ends a run from which nothing could be learned.

  Args:
    task: Of the run.
    baselines: What was run.

  Raises:
    MeasurementError: no step of them runs, wherever ops are.
  """
  failure = results_lib.never_runs([b.evaluation for b in baselines])
  if failure is not None:
    raise errors.MeasurementError(
        f'Steps of "{task.graph.name}" fail in all {len(baselines)} placements '
        f'to start from: {failure.message.rstrip(". ")}. Mend that, or use '
        '--reward=simulated.')


def identity(options: task_lib.TrainOptions,
             tasks: Sequence[task_lib.Task]) -> dict[str, Any]:
  """What has to be equal for a run to go on, whichever network learns.

  Args:
    options: Of the run.
    tasks: Its graphs.

  Returns:
    A part of the content of config.json.
  """
  return {
      'graph': [{
          'name': task.graph.name, 'fingerprint': task.graph.fingerprint
      } for task in tasks],
      'cluster': [json.loads(task.cluster.to_json()) for task in tasks],
      'reward': options.reward,
      # A stopwatch does not ask for them.
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
    options: Of the run.
    identity: The content of config.json.
    tasks: The graphs.

  Yields:
    What prices placements in other processes; None for none.

  Raises:
    GdpError: the model directory is that of another run, or cannot be written.
  """
  with contextlib.ExitStack() as stack:
    stack.enter_context(checkpoints.held(options.model_dir))
    if options.restart:
      checkpoints.discard(options.model_dir)
    checkpoints.claim(options.model_dir, identity)
    stack.enter_context(interrupts.told_what_is_kept(options.model_dir))
    for task in tasks:
      stack.enter_context(task.processes)
    yield references.pricing(options, tasks, stack)
