"""Jobs of the programs about Ray: random placements, priced."""

from __future__ import annotations

import functools
import time
from typing import Any, Callable, Sequence

import numpy as np

from gdp_grappler import progress
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation import robust_evaluator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team
from placer_model.benchmark import loading
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

PRICE = f'{__name__}:make'
Setup = tuple[op_graph.OpGraph, str]


def make(setup: Setup) -> Callable[[Any], np.ndarray]:
  """Returns a function that prices random placements by a job's seed."""
  job_worker.alone()
  graph, preset = setup
  simulator = simulator_lib.Simulator(presets.preset(preset), threads=1)
  return functools.partial(_price, graph.replace(),
                           robust_evaluator.objective(simulator))


def _price(graph: op_graph.OpGraph, evaluator: Any,
           job: jobs_lib.Call) -> np.ndarray:
  """Returns float64 [K], the simulated steps of K placements."""
  seed, count = job.arguments
  groups = np.random.default_rng(seed).integers(0,
                                                evaluator.cluster.num_devices,
                                                (count, graph.num_groups))
  return evaluator.price_groups(graph, groups).seconds


def echoing(setup: Any) -> Callable[[Any], Any]:
  """Returns a function that returns the setup for each job."""
  job_worker.alone()
  return lambda job: setup


def loaded(graph: str, cluster: str) -> loading.Loaded:
  """Loads a task of gdp_bench."""
  progress.doing(f'loading {graph}')
  return loading.load(tasks_lib.Task(graph, cluster), settings_lib.Settings())


def pricing(count: int, placements: int) -> list[jobs_lib.Call]:
  """Returns a number of jobs, each with a number of placements."""
  return [
      jobs_lib.Call(f'pricing {seed}', (seed, placements))
      for seed in range(count)
  ]


def placement_s(setup: Setup) -> float:
  """Returns the seconds of pricing a placement in a prepared job."""
  placements, seconds = 100, []
  with local_team.Here(1).team(PRICE, setup) as team:
    for _ in range(4):
      seconds += [e.seconds for e in team.run(pricing(1, placements))]
  return min(seconds[1:]) / placements


def timed(team: jobs_lib.Team[Any],
          jobs: Sequence[jobs_lib.Job]) -> tuple[float, list[Any]]:
  """Returns the seconds of all jobs, and their results."""
  begin = time.monotonic()
  results = team.results(jobs, shown=False)
  return time.monotonic() - begin, results
