"""Searches whose moves are learned from or tested on."""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np

from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.evaluation.costs import roofline
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.placers import annealing_placer
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.workloads.synthetic import synthetic
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config

# Orders of magnitude by which kernels may be shorter.
_FASTER = 2.


@dataclasses.dataclass(frozen=True)
class Setup:
  """What searches of a run have in common.

  Attributes:
    config: Sizes.
    threads: Simulations side by side.
  """

  config: pretrain_config.PretrainConfig
  threads: int


def make(setup: Setup) -> Callable[[jobs_lib.Call], logs.Log | None]:
  """What draws and searches, given a seed; see `job_worker`."""
  job_worker.alone()
  return lambda job: draw(setup.config, np.random.default_rng(job.arguments),
                          setup.threads)


def draw(config: pretrain_config.PretrainConfig, rng: np.random.Generator,
         threads: int | None = None) -> logs.Log | None:
  """The moves of a search on a problem that is drawn; None if it has none.

  It begins at the planted placement, at a random one in blocks, or at the best
  of those: where searches are long before their end, halfway and near it. Some
  of the searches on GPUs price under priorities.

  Args:
    config: Sizes.
    rng: Of all of it.
    threads: Simulations side by side; by default one per core.
  """
  drawn = synthetic.draw(rng, config.drawn)
  step = drawn.step
  if rng.random() < config.hasty:
    step = _with_short_kernels(step, rng)
  problem = _problem(step, int(rng.integers(1 << 31)), threads)
  first = drawn.graph.first_ops
  starts = np.concatenate([
      drawn.planted.devices[first][None],
      *annealing_placer.starting_points(problem, (), rng).values()
  ])
  if rng.random() < .7:
    starts = starts[int(rng.integers(len(starts)))][None]
  ordered = problem.orders_pay and rng.random() < config.ordered
  log = logs.collect(problem, starts, config.evaluations(drawn.graph.num_ops),
                     rng, ordered)
  return log and log.thinned(config.kept_losses, rng)


def _with_short_kernels(step: step_lib.Step,
                        rng: np.random.Generator) -> step_lib.Step:
  """As on cards that compute faster, by up to two orders of magnitude.

  The host takes as long as ever, so that it bounds more and more of the step.
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
  """The moves of a search on a given problem, from cheap placers' best.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  problem = _problem(step, seed)
  rng = np.random.default_rng(seed)
  starts = annealing_placer.starting_points(problem, ('single_device', 'm_etf'),
                                            rng)
  log = logs.collect(problem, np.concatenate(list(starts.values())),
                     evaluations, rng)
  if log is None:
    raise ValueError(f'Graph "{step.graph.name}" has nothing to move.')
  return log


def _problem(step: step_lib.Step, seed: int,
             threads: int | None = None) -> placer_lib.Problem:
  """Without an expert."""
  step = dataclasses.replace(step, expert=None)
  prices = simulator.Simulator(step.cluster, step.cost_model, threads)
  return dataclasses.replace(step.problem(prices, seed=seed), simulator=prices)
