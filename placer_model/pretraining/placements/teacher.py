"""Finds good placements of drawn problems, as maps of coordinates to devices.

A placement that decides about single units is hard to learn, and hardly ever
applies to another graph.
"""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.features import featurizer
from gdp_grappler.graph import coarsening
from gdp_grappler.placers import annealing_placer as starts_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.coordinates import structured
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.workloads.synthetic import synthetic
from placer_model.pretraining.placements import example as example_lib
from placer_model.training import environment as environment_lib
from placer_model.training import equal_devices

# Placers that are run.
_PLACERS = ('structured',)
# Number of most promising placements by coordinates that are priced.
_STRUCTURED = 96
# Least share of the units in which two answers differ.
_DIFFERS = .1


@dataclasses.dataclass(frozen=True)
class TeacherConfig:
  """Distribution of problems, and selection of answers.

  Attributes:
    drawn: Distribution of the drawn problems.
    excess: Largest relative excess of an answer's step time over the best.
    answers: Largest number of answers per problem.
  """

  drawn: synthetic.Config = synthetic.Config(ops=(100, 6000),
                                             accelerators=(2, 8))
  excess: float = .12
  answers: int = 12


def make(
    config: TeacherConfig
) -> Callable[[jobs_lib.Call], example_lib.Example | None]:
  """Returns the function that does jobs in a worker; see `job_worker`."""
  job_worker.alone()
  return lambda job: draw(config, np.random.default_rng(job.arguments))


def draw(config: TeacherConfig,
         rng: np.random.Generator) -> example_lib.Example | None:
  """Returns a drawn problem and its answers; None if it is unusable.

  A problem is unusable if no unit has a choice or no placement fits.
  """
  drawn = synthetic.draw(rng, config.drawn)
  problem = problem_of(drawn.step, int(rng.integers(1 << 31)), 1)
  return answered(problem, drawn.planted.devices[drawn.graph.first_ops][None],
                  config, rng)


def answered(problem: placer_lib.Problem, known: np.ndarray,
             config: TeacherConfig,
             rng: np.random.Generator) -> example_lib.Example | None:
  """Returns a problem with its answers among placements by coordinates.

  Args:
    problem: Problem with G groups.
    known: int [S, G], further placements to consider.
    config: Selection of answers.
    rng: Source of random numbers.

  Returns:
    The example, or None if no unit has a choice or no placement fits.
  """
  environment = environment_of(problem)
  if not (environment.allowed.sum(axis=1) > 1).any():
    return None
  rows = np.concatenate([
      known,
      structured.candidates(problem)[:_STRUCTURED],
      *starts_lib.starting_points(problem, _PLACERS, rng).values()
  ])
  trials = environment.price(_decisions(environment, rows))
  if trials.best() is None:
    return None
  return _example(environment, trials, config)


def problem_of(step: step_lib.Step, seed: int,
               threads: int | None = None) -> placer_lib.Problem:
  """Returns the problem of a step, without an expert's placement.

  Args:
    step: A graph on a cluster.
    seed: Seed of placers.
    threads: Number of simulations in parallel; by default one per core.
  """
  prices = simulator.Simulator(step.cluster, step.cost_model, threads)
  return dataclasses.replace(step, expert=None).problem(prices, seed=seed)


def environment_of(problem: placer_lib.Problem) -> environment_lib.Environment:
  """Returns the problem's units, as `learned` makes them for our policies."""
  seconds = problem.op_seconds
  units = coarsening.units(coarsening.NESTED, problem.graph, problem.allowed,
                           seconds)
  return environment_lib.Environment(
      problem.graph, problem.cluster, problem.evaluator, units,
      featurizer.featurize(problem.graph, problem.cluster, units, seconds))


def _decisions(environment: environment_lib.Environment,
               rows: np.ndarray) -> np.ndarray:
  """Returns the device with most of each unit's work, int32 [K, M].

  Equal rows are returned once.

  Args:
    environment: Environment with the units.
    rows: int [S, G], devices of groups.
  """
  work = environment.op_seconds.min(axis=1) + 1e-12
  size = environment.num_units, environment.cluster.num_devices
  found = []
  for row in rows[:, environment.graph.groups]:
    on = np.bincount(environment.units * size[1] + row, work,
                     size[0] * size[1]).reshape(size)
    found.append(np.where(environment.allowed, on, -1.).argmax(axis=1))
  return np.unique(np.array(found, np.int32), axis=0)


def _example(environment: environment_lib.Environment,
             trials: environment_lib.Trials,
             config: TeacherConfig) -> example_lib.Example:
  """Returns the best priced placements that differ enough from each other."""
  ranking = np.argsort(trials.step_time_s, kind='stable')
  best_s = max(float(trials.step_time_s[ranking[0]]), 1e-30)
  answers: list[np.ndarray] = []
  excess: list[float] = []
  for k in ranking:
    over = float(trials.step_time_s[k]) / best_s - 1
    if not over <= config.excess or len(answers) == config.answers:
      break
    row = trials.decisions[k]
    if all((row != other).mean() > _DIFFERS for other in answers):
      answers.append(row)
      excess.append(over)
  sets = equal_devices.equal_sets(environment.cluster, environment.allowed)
  return example_lib.Example(environment.features, np.stack(answers),
                             np.array(excess, np.float32), tuple(sets))
