"""What a run learns on: a graph, a cluster, and how it is priced."""

from __future__ import annotations

import dataclasses
import pathlib

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import remote_devices
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.evaluation.costs import given_costs
from gdp_grappler.evaluation.emulation import emulator
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measurer
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.features import featurizer
from gdp_grappler.features import schema
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import sources
from gdp_grappler.placers import placer as placer_lib
from placer_model.training import train_config

REWARDS = ('simulated', 'measured', 'emulated')
UNITS = ('coarse', 'fine')


@dataclasses.dataclass(frozen=True)
class Options:
  """What the command line says.

  Attributes:
    graph: What `sources.load` reads.
    cluster: What `resolve.resolve` knows; '' or 'target' for the devices found
      where steps are measured.
    reward: One of `REWARDS`.
    model_dir: Where everything goes.
    units: One of `UNITS`; 'fine' decides about every group of ops by itself.
    config: Name of the presets of `train_config` and `placer_model.config`.
    seed: Of weights, samples and baselines.
    batch_size: Stands for dimensions that the graph leaves open.
    iterations: Instead of the preset's; None keeps it.
    rollouts: Instead of the preset's; None keeps it.
    time_budget_s: Rollouts and updates stop after so many seconds, at the end
      of an iteration; None: only `iterations` counts.
    init_policy: Model directory of another run whose weights to start from.
    target: 'grpc://host:port' of the TensorFlow cluster to measure on.
    local_workers: Servers to start on this machine and to measure on.
  """

  graph: str
  cluster: str
  reward: str
  model_dir: pathlib.Path
  units: str = 'coarse'
  config: str = 'default'
  seed: int = 0
  batch_size: int = sources.DEFAULT_BATCH_SIZE
  iterations: int | None = None
  rollouts: int | None = None
  time_budget_s: float | None = None
  init_policy: pathlib.Path | None = None
  target: str = ''
  local_workers: int = 0

  def train_config(self) -> train_config.TrainConfig:
    """The preset, cut down for measuring, with what was given."""
    config = train_config.preset(self.config)
    if self.reward != 'simulated':
      config = train_config.for_measuring(config)
    changes = {
        name: getattr(self, name) for name in ('iterations', 'rollouts')
        if getattr(self, name) is not None
    }
    return dataclasses.replace(config, **changes)


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
  """A graph to be placed and everything derived from it."""

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  evaluator: evaluator_lib.Evaluator
  op_seconds: np.ndarray
  units: np.ndarray
  features: schema.GraphFeatures
  problem: placer_lib.Problem


def load(options: Options) -> Task:
  """Reads the graph and finds out where it is to run.

  Raises:
    GdpError: the options contradict each other, or something is missing.
  """
  _cluster(options)  # An unknown name is told at once.
  problem = _problem(options)
  graph, cluster = problem.graph, problem.cluster
  units = (coarsening.coarsen(graph, problem.allowed, problem.op_seconds)
           if options.units == 'coarse' else coarsening.groups_as_units(graph))
  features = featurizer.featurize(graph, cluster, units, problem.op_seconds)
  return Task(graph, cluster, problem.evaluator, problem.op_seconds, units,
              features, problem)


def _problem(options) -> placer_lib.Problem:
  given = given_costs.load(options.graph)
  if given is None:
    source = sources.load(options.graph, batch_size=options.batch_size)
    cluster = _cluster(options, source.devices)
    graph = graph_def_io.read(source, unknown_dim=options.batch_size)
    evaluator = _make_evaluator(options, cluster, source)
  elif options.reward == 'measured':
    raise errors.GdpError(
        f'{options.graph} has costs but no TensorFlow ops, so its steps cannot '
        'be measured. Use --reward=simulated.')
  else:
    graph, costs = given
    cluster = _cluster(options)
    evaluator = _predicted(options, cluster, costs)
  return placer_lib.Problem(graph, cluster, evaluator, options.seed)


def _cluster(options, devices=()) -> cluster_lib.Cluster:
  """Where the graph is to run."""
  there = _measured_cluster(options)
  if there is None:
    return resolve.resolve(options.cluster, devices)
  if options.cluster in ('', 'target', options.target):
    return there
  given = resolve.resolve(options.cluster, devices)
  missing = [n for n in given.device_names if n not in there.device_names]
  if missing:
    raise errors.ClusterError(
        f'Cluster "{given.name}" has device {missing[0]}, but "{there.name}", '
        f'to measure on, has {", ".join(there.device_names)}. Give a cluster '
        'file with these names, or --cluster=target.')
  return given


def _measured_cluster(options) -> cluster_lib.Cluster | None:
  """The devices of a target or of local workers; None without these."""
  if options.local_workers and options.target:
    raise errors.GdpError('Both --target and --local_workers are given. Give '
                          'one of them.')
  if not options.local_workers and not options.target:
    if options.cluster in ('', 'target'):
      raise errors.GdpError('There is no cluster. Give --cluster; or, to '
                            'measure, --target or --local_workers.')
    return None
  if options.reward != 'measured':
    raise errors.GdpError('--target and --local_workers are to measure on. '
                          'Give --reward=measured too.')
  if options.local_workers:
    return local_workers.cluster(options.local_workers)
  return remote_devices.remote_cluster(options.target)


def _make_evaluator(
    options, cluster,
    source: source_graph.SourceGraph) -> evaluator_lib.Evaluator:
  if options.reward != 'measured':
    return _predicted(options, cluster, None)
  return measurer.Measurer(source, cluster, batch_size=options.batch_size,
                           target=options.target,
                           local_workers=options.local_workers,
                           cache_dir=options.model_dir / 'measurements')


def _predicted(
    options: Options, cluster: cluster_lib.Cluster,
    costs: cost_model_lib.CostModel | None) -> evaluator_lib.Evaluator:
  """An evaluator that takes the seconds of ops from a cost model."""
  if options.reward == 'emulated':
    return emulator.Emulator(cluster, costs)
  return simulator.Simulator(cluster, costs)
