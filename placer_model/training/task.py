"""The task of a training run: a graph, a cluster and an evaluator."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import pathlib
from typing import Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import max_memory as max_memory_lib
from gdp_grappler.cluster import remote_devices
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation import deadline_evaluator
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.emulation import emulator
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measure_config
from gdp_grappler.evaluation.measuring import measurer
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.features import featurizer
from gdp_grappler.features import schema
from gdp_grappler.graph import assumptions
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import step as step_lib
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib
from gdp_grappler.problems import rewards
from placer_model.training import initial_weights
from placer_model.training import network_kinds
from placer_model.training import train_config

# Least timeout of a measured or emulated step. The first placement runs even if
# no time is left.
_LEAST_TIMEOUT_S = 30.


@dataclasses.dataclass(frozen=True)
class TrainOptions:
  """Options of a training run, as given on the command line.

  Attributes:
    graph: Name or path of the graph, see `request.Request`.
    cluster: Text that `resolve.resolve` accepts. '' or 'target' means the
      devices on which steps are measured.
    reward: One of `rewards.ALL`.
    model_dir: Directory of all files that the run writes.
    units: 'coarse'; or 'fine', to decide about every group of ops by itself.
    config: Name of a preset of both `train_config` and `placer_model.config`.
    seed: Seed of weights, samples and baselines.
    batch_size: Batch size of the graph, see `request.Request`.
    trip_count: Iterations of loops without a known count, see
      `request.Request`.
    profile: Profile with costs of ops, see `request.Request`.
    may_round: Whether ops may move to devices that round differently, see
      `request.Request`.
    iterations: Number of iterations. None means the preset's.
    rollouts: Rollouts per iteration. None means the preset's.
    time_budget_s: Time limit of the whole run, in seconds. None means that only
      `iterations` ends it.
    init_policy: Model directory of another run, or folder of a policy, with the
      initial weights. A policy also determines the network's sizes and the
      units.
    restart: Whether to discard a run that is already in `model_dir`.
    target: 'grpc://host:port' of the TensorFlow cluster to measure on.
    local_workers: Number of servers to start on this machine and to measure on.
    searches: Number of local searches, each with another seed. The best result
      is one of the placements to start from.
    ray: Ray cluster on which placements are priced, see `machines.of`. None
      means this process.
    max_memory: Limits on the memory of devices, see `resolve.resolve`.
    network: Network to train, one of `network_kinds`.
    command: Command of the run, for its results; '' for none.
  """

  graph: str
  cluster: str
  reward: str
  model_dir: pathlib.Path
  units: str = 'coarse'
  config: str = 'default'
  seed: int = 0
  batch_size: int = assumptions.DEFAULT_BATCH_SIZE
  trip_count: int = assumptions.DEFAULT_TRIP_COUNT
  profile: str = ''
  may_round: bool = False
  iterations: int | None = None
  rollouts: int | None = None
  time_budget_s: float | None = None
  init_policy: pathlib.Path | None = None
  restart: bool = False
  target: str = ''
  local_workers: int = 0
  searches: int = 0
  ray: str | None = None
  max_memory: max_memory_lib.MaxMemory = ()
  network: str = network_kinds.ONE_SHOT
  command: str = ''

  def request(self) -> request_lib.Request:
    """Returns the description of the graph to read."""
    return request_lib.Request(self.graph, self.batch_size, self.trip_count,
                               self.profile, self.may_round)

  @property
  def kind_of_units(self) -> str:
    """The kind of units, as `coarsening.units` takes it."""
    policy = initial_weights.policy(self.init_policy) or {}
    wanted = self.units, self.train_config().units, policy.get('units')
    # Exploration by levels needs nested units or finer ones.
    return next(
        (kind
         for kind in (coarsening.FINE, coarsening.NESTED) if kind in wanted),
        coarsening.COARSE)

  def train_config(self) -> train_config.TrainConfig:
    """Returns the preset, reduced for measuring, with the options' values."""
    config = train_config.preset(self.config)
    if self.reward != rewards.SIMULATED:
      config = train_config.for_measuring(config)
    changes = {
        name: getattr(self, name) for name in ('iterations', 'rollouts')
        if getattr(self, name) is not None
    }
    return dataclasses.replace(config, **changes)


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
  """A graph to be placed, and everything derived from it.

  Attributes:
    graph: Graph of N ops.
    cluster: Cluster of D devices.
    evaluator: Evaluator of final step times. The objective that placers
      minimise is `problem.evaluator`.
    simulator: Simulator of the cluster, also if steps are measured.
    op_seconds: float64 [N, D], seconds of each op on each device.
    problem: Problem that placers solve.
    processes: Context manager that ends the processes of the evaluator.
    kind_of_units: Kind of units, as `coarsening.units` takes it.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  evaluator: evaluator_lib.Evaluator
  simulator: simulator_lib.Simulator
  op_seconds: np.ndarray
  problem: placer_lib.Problem
  processes: contextlib.AbstractContextManager[object]
  kind_of_units: str

  @functools.cached_property
  def units(self) -> np.ndarray:
    """The unit of each op, int32 [N], for the network of one forward pass."""
    return coarsening.units(self.kind_of_units, self.graph,
                            self.problem.allowed, self.op_seconds)

  @functools.cached_property
  def features(self) -> schema.GraphFeatures:
    """Features of the units, of the cluster and of edges."""
    return featurizer.featurize(self.graph, self.cluster, self.units,
                                self.op_seconds)


def load(options: TrainOptions, tell: reading.Tell,
         deadline: deadlines.Deadline = deadlines.NEVER) -> Task:
  """Reads the graph, and makes the evaluator of its steps.

  Args:
    options: Options of the run.
    tell: Called with one line for each assumption about the graph.
    deadline: Time after which no step is measured or emulated.

  Raises:
    GdpError: the options contradict each other, or something is missing.
  """
  request = options.request()
  step = reading.read(request, functools.partial(_cluster, options), tell)
  evaluator: evaluator_lib.Evaluator = step.simulator()
  processes: contextlib.AbstractContextManager[object] = (
      contextlib.nullcontext())
  if options.reward != rewards.SIMULATED:
    runner = processes = _runner(options, request, step, deadline)
    evaluator = deadline_evaluator.DeadlineEvaluator(runner, deadline)
  problem = step.problem(evaluator, options.seed)
  kind = (options.kind_of_units
          if options.network == network_kinds.ONE_SHOT else coarsening.COARSE)
  return Task(problem.graph, problem.cluster, evaluator, step.simulator(),
              problem.op_seconds, problem, processes, kind)


def _cluster(
    options: TrainOptions, devices: Sequence[str] = ()) -> cluster_lib.Cluster:
  """Returns the cluster that the graph is placed on."""
  there = _measured_cluster(options)
  if there is None:
    return resolve.resolve(options.cluster, devices, options.max_memory)
  if options.cluster in ('', 'target', options.target):
    return max_memory_lib.applied(there, options.max_memory)
  given = resolve.resolve(options.cluster, devices, options.max_memory)
  missing = [n for n in given.device_names if n not in there.device_names]
  if missing:
    raise errors.ClusterError(
        f'Cluster "{given.name}" has device {missing[0]}, but "{there.name}", '
        f'to measure on, has {", ".join(there.device_names)}. Give a cluster '
        'file with these names, or --cluster=target.')
  return given


def _measured_cluster(options: TrainOptions) -> cluster_lib.Cluster | None:
  """Returns the devices of a target or of local workers; None without these."""
  if options.local_workers and options.target:
    raise errors.GdpError('Both --target and --local_workers are given. Give '
                          'one of them.')
  if not options.local_workers and not options.target:
    if options.cluster in ('', 'target'):
      raise errors.GdpError('There is no cluster. Give --cluster; or, to '
                            'measure, --target or --local_workers.')
    return None
  if options.reward != rewards.MEASURED:
    raise errors.GdpError('--target and --local_workers are to measure on. '
                          'Give --reward=measured too.')
  if options.local_workers:
    return local_workers.cluster(options.local_workers)
  return remote_devices.remote_cluster(options.target)


def _runner(
    options: TrainOptions, request: request_lib.Request, step: step_lib.Step,
    deadline: deadlines.Deadline) -> emulator.Emulator | measurer.Measurer:
  """Returns the evaluator that runs steps."""
  left_s = max(deadline.left_s,
               _LEAST_TIMEOUT_S) if deadline.left_s is not None else math.inf
  if options.reward == rewards.EMULATED:
    return emulator.Emulator(step.cluster, step.cost_model,
                             timeout_s=min(emulator.TIMEOUT_S, left_s))
  timeout_s = min(measure_config.MeasureConfig.timeout_s, left_s)
  return measurer.Measurer(reading.measurable(request, step), step.cluster,
                           batch_size=options.batch_size, target=options.target,
                           local_workers=options.local_workers,
                           timeout_s=timeout_s,
                           cache_dir=options.model_dir / 'measurements')
