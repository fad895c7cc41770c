"""Baselines of a run, placed in this process or on a cluster."""

from __future__ import annotations

import dataclasses
from typing import Sequence

from gdp_grappler import deadlines
from gdp_grappler import progress
from gdp_grappler.evaluation import deadline_evaluator
from placer_model.training import baselines as baselines_lib
from placer_model.training import job_pricing
from placer_model.training import task as task_lib

# Share of the time budget for baselines, if steps are measured or emulated.
_BASELINES_SHARE = .4


def place_all(
    options: task_lib.TrainOptions, tasks: Sequence[task_lib.Task],
    deadline: deadlines.Deadline, pricing: job_pricing.Pricing | None
) -> list[tuple[baselines_lib.Result, ...]]:
  """Returns the baselines of each task, and the best of its searches.

  Args:
    options: Options of the run.
    tasks: Tasks of the run.
    deadline: Time until which control edges may be computed.
    pricing: Team on a cluster; None to place in this process.

  Raises:
    InfeasiblePlacementError: a graph cannot be placed on its cluster.
    JobError: a placer failed on the cluster.
  """
  seeds = [options.seed + number for number in range(options.searches)]
  names = [(name, options.seed) for name in baselines_lib.NAMES]
  names += [(baselines_lib.SEARCH, seed) for seed in seeds]
  if pricing:
    progress.doing('pricing baselines')
    found = pricing.place(
        [(task, *name) for task in range(len(tasks)) for name in names],
        deadline)
    every = [
        tuple(found[first:first + len(names)])
        for first in range(0, len(found), len(names))
    ]
  else:
    every = [
        _baselines(task, deadline) + tuple(
            baselines_lib.place(baselines_lib.SEARCH,
                                dataclasses.replace(task.problem, seed=seed),
                                task.evaluator, task.simulator, deadline)
            for seed in seeds) for task in tasks
    ]
  count = len(baselines_lib.NAMES)
  return [
      results[:count] + ((baselines_lib.best(results[count:]),) if seeds else
                         ()) for results in every
  ]


def _baselines(
    task: task_lib.Task,
    deadline: deadlines.Deadline) -> tuple[baselines_lib.Result, ...]:
  """Runs the baselines of a task.

  If steps are measured or emulated, the baselines stop early enough to leave
  time for training.
  """
  problem = task.problem
  if not problem.evaluator.simulated:
    problem = dataclasses.replace(
        problem, evaluator=deadline_evaluator.DeadlineEvaluator(
            problem.evaluator, deadline.after(_BASELINES_SHARE)))
  return tuple(
      baselines_lib.place(name, problem, task.evaluator, task.simulator,
                          deadline) for name in baselines_lib.NAMES)
