"""The searches whose moves are trained on, or tested on."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.workloads.synthetic import synthetic
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config

# Largest decrease of kernel times, in orders of magnitude.
_FASTER = 2.
# Moves that a round of `gdp_policy` draws.
_DRAWS = policy_config.PolicyConfig().draws
# Shares of the moves of a round whose gains a search knows. With the lowest
# share, a search chooses its moves almost by chance.
_KNOWN = (policy_config.PolicyConfig().at_once / _DRAWS, .1, 1.)
# This share in searches on which a network is tested.
_KNOWN_TEST = .1


@dataclasses.dataclass(frozen=True)
class Setup:
  """Settings that all searches of a run share.

  Attributes:
    config: Settings of the run.
    threads: Number of simulations in parallel.
  """

  config: pretrain_config.PretrainConfig
  threads: int


def make(setup: Setup) -> Callable[[jobs_lib.Call], logs.Log | None]:
  """Returns the function that does jobs in a worker; see `job_worker`."""
  job_worker.alone()
  return lambda job: draw(setup.config, np.random.default_rng(job.arguments),
                          setup.threads)


def draw(config: pretrain_config.PretrainConfig, rng: np.random.Generator,
         threads: int | None = None) -> logs.Log | None:
  """Draws a problem, and returns the moves of a search on it.

  The search is that of `gdp_policy`. It chooses moves partly at random, so that
  moves come from good and bad searches.

  Args:
    config: Settings of the run.
    rng: Source of all random numbers.
    threads: Number of simulations in parallel; by default one per core.

  Returns:
    The log of the moves, or None if there is nothing to move.
  """
  drawn = synthetic.draw(rng, config.drawn)
  step = drawn.step
  if rng.random() < config.hasty:
    step = _with_short_kernels(step, rng)
  problem = _problem(step, int(rng.integers(1 << 31)), threads)
  evaluations = config.evaluations(drawn.graph.num_ops)
  return logs.collect(problem, max(evaluations // _DRAWS, 1),
                      float(rng.choice(_KNOWN)), rng)


def _with_short_kernels(step: step_lib.Step,
                        rng: np.random.Generator) -> step_lib.Step:
  """Shortens kernels by a random factor, as on faster cards.

  The host's work takes the same time, so that it bounds a larger part of the
  step.
  """
  costs = roofline.Roofline()
  seconds = np.array(costs.op_seconds(step.graph, step.cluster))
  seconds[:, list(step.cluster.accelerators)] *= 10**-rng.uniform(0, _FASTER)
  return dataclasses.replace(
      step,
      cost_model=fixed_costs.FixedCostModel(seconds,
                                            costs.contention(step.cluster),
                                            costs.launches(step.graph),
                                            costs.host_work(step.graph)))


def of_step(step: step_lib.Step, evaluations: int, seed: int) -> logs.Log:
  """Returns the moves of a search on a problem.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
    GdpError: there is nothing to move.
  """
  log = logs.collect(_problem(step, seed), max(evaluations // _DRAWS, 1),
                     _KNOWN_TEST, np.random.default_rng(seed))
  if log is None:
    raise errors.GdpError(
        f'Graph "{step.graph.name}" has no op that could have another device '
        f'of "{step.cluster.name}", so it cannot be held out. Leave it out '
        'of --held_out, or name a cluster with more devices.')
  return log


def _problem(step: step_lib.Step, seed: int,
             threads: int | None = None) -> placer_lib.Problem:
  """Returns the problem of a step, without an expert's placement."""
  step = dataclasses.replace(step, expert=None)
  prices = simulator.Simulator(step.cluster, step.cost_model, threads)
  return dataclasses.replace(step.problem(prices, seed=seed), simulator=prices)
