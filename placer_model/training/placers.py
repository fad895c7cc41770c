"""GDP's policies, trained for each graph, as placers (GDP, section 4)."""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from typing import Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.features import featurizer
from gdp_grappler.graph import coarsening
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.policy import learned
from gdp_grappler.placers.policy import policy_decoding
from gdp_grappler.placers.search import memory_fit
from gdp_grappler.placers.search import priced_placements
from gdp_grappler.problems import reading
from placer_model import config as config_lib
from placer_model import export
from placer_model import infeasible
from placer_model import network as network_lib
from placer_model.training import baselines as baselines_lib
from placer_model.training import batch as batch_lib
from placer_model.training import environment as environment_lib
from placer_model.training import optimizers as optimizers_lib
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

# Further graphs of GDP-batch: one of each family in the papers, small, so that
# a large share of the time goes into training.
COMPANIONS = tuple(f'{name}@tiny@2xP100'
                   for name in ('rnnlm-2', 'gnmt-2', 'transformer-xl-2',
                                'inception-v3-b32', 'amoebanet',
                                'wavenet-2x18'))
# GDP, section 4.3: fine-tuning takes fewer than 50 steps.
FINE_TUNING_STEPS = 49
# GDP, section 4.3: fine-tuning takes less than one minute.
FINE_TUNING_S = 60.


class GdpPlacer:
  """GDP-one: returns the best valid placement sampled during training.

  Training starts from random weights, and no placement of another placer is
  priced. The unit of the reward is the time of all ops one after the other.

  Attributes:
    config: Settings of the training.
    policy: Sizes and switches of the network. Its seed is replaced by the
      problem's.
  """

  def __init__(self, network: str = 'gdp_one',
               config: train_config.TrainConfig | None = None) -> None:
    """Initializes the placer.

    Args:
      network: Preset of `placer_model.config`.
      config: Settings of the training. None means the preset `gdp_one`.
    """
    self.policy = config_lib.preset(network)
    self.config = config or train_config.preset('gdp_one')

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: no sampled placement is valid.
    """
    if not problem.graph.num_ops:
      return placement_lib.Placement(np.zeros(0, np.int32), problem.cluster)
    deadline = deadlines.within(self._budget_s(problem), problem.clock)
    trainers = self._trainers(problem)
    own = trainers[0].state
    batch = batch_lib.Batch(trainers, self.config.iterations)
    # The first iteration includes tracing, so its time is not counted.
    done, start_s = 0., None
    while not own.iteration or not deadline.passed:
      turn = batch.next() if self._ends(problem) else _least_seen(trainers)
      if turn is None:
        break
      if start_s is not None:
        done = deadline.spent(start_s)
      if self._ends(problem):
        done = max(done, trainers[turn].share)
      trainers[turn].step(done)
      start_s = start_s or problem.clock()
      progress.reached(done, f'best price {own.best_step_time_s * 1e3:.4g} ms')
    if own.best_decisions is None:
      last = trainers[0].placement(trainers[0].say().decisions[0])
      if own.best_decisions is None:
        raise infeasible.none_valid(problem, own.total_evaluations, last)
    return trainers[0].best_placement()

  def _budget_s(self, problem: placer_lib.Problem) -> float | None:
    return problem.time_budget_s

  def _ends(self, problem: placer_lib.Problem) -> bool:
    """Whether the run ends after its iterations, even if time is left."""
    return problem.time_budget_s is None

  def _trainers(self,
                problem: placer_lib.Problem) -> Sequence[trainer_lib.Trainer]:
    """Returns trainers of one network; the first has the problem's graph."""
    return [self._trainer(problem)]

  def _trainer(
      self, problem: placer_lib.Problem,
      network: network_lib.PlacerNetwork | None = None,
      optimizers: optimizers_lib.Optimizers | None = None
  ) -> trainer_lib.Trainer:
    graph, cluster = problem.graph, problem.cluster
    seconds = problem.op_seconds
    units = coarsening.units(self.config.units, graph, problem.allowed, seconds)
    features = featurizer.featurize(graph, cluster, units, seconds)
    environment = environment_lib.Environment(graph, cluster, problem.evaluator,
                                              units, features)
    reference_s = baselines_lib.reference_s((), seconds)
    return trainer_lib.Trainer(environment, network or self._network(problem),
                               network_lib.features_to_tensors(features),
                               self.config, problem.seed,
                               np.empty((0, environment.num_units),
                                        np.int32), reference_s, optimizers)

  def _network(self, problem: placer_lib.Problem) -> network_lib.PlacerNetwork:
    return network_lib.PlacerNetwork(self.policy.replace(seed=problem.seed))


class BatchPlacer(GdpPlacer):
  """GDP-batch: trains one policy on the graph and on graphs of other models.

  The graphs take turns (`batch.Batch`), and the graph has as many iterations as
  it would have alone. With a time budget, each graph gets an equal share of the
  time that is left after the others are read. So the graph gets less time than
  it would have alone.
  """

  def __init__(self, companions: Sequence[str] = COMPANIONS,
               config: train_config.TrainConfig | None = None) -> None:
    """Initializes the placer.

    Args:
      companions: The other graphs, 'GRAPH@CLUSTER' each.
      config: Settings of the training. None means the preset `gdp_one`.
    """
    super().__init__(config=config)
    self._companions = tuple(companions)

  def _trainers(self,
                problem: placer_lib.Problem) -> Sequence[trainer_lib.Trainer]:
    network = self._network(problem)
    optimizers = optimizers_lib.Optimizers.make(self.config)
    others = [
        dataclasses.replace(
            reading.read_task(task, progress.doing).problem(),
            seed=problem.seed) for task in self._companions
    ]
    return [
        self._trainer(each, network, optimizers) for each in (problem, *others)
    ]


class FineTunedPlacer(GdpPlacer):
  """Trains a trained policy further on the graph (GDP, section 4.3).

  Training has the paper's limits on steps and time. The initial, zero-shot
  placements of the policy are priced too and, as in `learned.LearnedPlacer`,
  all ops on one device, for each kind of device.
  """

  def __init__(self, policy: str | None = None,
               config: train_config.TrainConfig | None = None) -> None:
    """Loads nothing yet.

    Args:
      policy: Folder that `gdp_train` or `gdp_pretrain` wrote. None means the
        folder in the environment variable GDP_POLICY, or else the policy that
        is shipped.
      config: Settings of the training. None means the preset `gdp_one` with
        fewer iterations.
    """
    super().__init__(config=config or dataclasses.replace(
        train_config.preset('gdp_one'), iterations=FINE_TUNING_STEPS))
    self._folder = policy

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    deadline = problem.deadline()
    found = priced_placements.PricedPlacements(problem.graph, problem.evaluator)
    with contextlib.suppress(errors.InfeasiblePlacementError):
      sampled = super().place(problem)
      found.add([sampled.devices[problem.graph.first_ops]])
    return memory_fit.best_fitting(problem, found, deadline)

  def _budget_s(self, problem: placer_lib.Problem) -> float | None:
    budget = problem.time_budget_s
    return FINE_TUNING_S if budget is None else min(budget, FINE_TUNING_S)

  def _ends(self, problem: placer_lib.Problem) -> bool:
    return True

  def _trainers(self,
                problem: placer_lib.Problem) -> Sequence[trainer_lib.Trainer]:
    """See `GdpPlacer`.

    Raises:
      PolicyMismatchError: there is no such policy, or it has other features.
    """
    folder = pathlib.Path(learned.folder(self._folder))
    trainer = self._trainer(problem, export.load_network(folder))
    trainer.say_also(
        policy_decoding.sizes(self.config.units, problem.graph, problem.allowed,
                              problem.op_seconds))
    return [trainer]


def _least_seen(trainers: Sequence[trainer_lib.Trainer]) -> int:
  """Returns the index of the trainer that has used the least time."""
  return min(range(len(trainers)), key=lambda k: trainers[k].state.seconds)
