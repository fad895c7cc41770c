"""GDP-one as placers: a policy that learns each graph anew (GDP, 4.1)."""

from __future__ import annotations

import time

import numpy as np

from gdp_grappler import errors
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.features import featurizer
from gdp_grappler.graph import coarsening
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry
from placer_model import config as config_lib
from placer_model import network as network_lib
from placer_model.training import baselines as baselines_lib
from placer_model.training import environment as environment_lib
from placer_model.training import train_config
from placer_model.training import trainer as trainer_lib

_REFERENCE = 'single_device'


class GdpPlacer:
  """The best valid placement that a policy sampled while it learned.

  The policy starts from nothing, and what other placers propose is not looked
  at: a single device gives the unit of the reward and nothing else.

  Attributes:
    config: Of the training.
    policy: Sizes and switches of the network; its seed is the problem's.
  """

  def __init__(self, network: str = 'paper',
               config: train_config.TrainConfig | None = None) -> None:
    """Initializes the placer.

    Args:
      network: Preset of `placer_model.config`.
      config: Of the training; the preset `paper` if None.
    """
    self.policy = config_lib.preset(network)
    self.config = config or train_config.preset('paper')

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: no placement sampled was valid.
    """
    start, budget = time.monotonic(), problem.time_budget_s
    trainer = self._trainer(problem)
    state = trainer.state
    while not state.iteration or (state.iteration < self.config.iterations
                                  if budget is None else time.monotonic()
                                  - start < budget):
      trainer.step()
      progress.reached(
          state.iteration / self.config.iterations if not budget else
          (time.monotonic() - start) / budget,
          f'best {state.best_step_time_s * 1e3:.4g} ms')
    if state.best_decisions is None:
      raise errors.InfeasiblePlacementError(
          f'None of {state.total_evaluations} sampled placements of '
          f'"{problem.graph.name}" runs on "{problem.cluster.name}": all '
          'exceed a memory. Give more time, more devices or a smaller model.')
    return trainer.best_placement()

  def _trainer(self, problem: placer_lib.Problem) -> trainer_lib.Trainer:
    graph, cluster = problem.graph, problem.cluster
    seconds = problem.op_seconds
    units = coarsening.coarsen(graph, problem.allowed, seconds)
    features = featurizer.featurize(graph, cluster, units, seconds)
    environment = environment_lib.Environment(graph, cluster, problem.evaluator,
                                              units, features)
    single = registry.create(_REFERENCE).place(problem)
    reference_s = baselines_lib.reference_s(
        [problem.evaluator.evaluate(graph, single)], seconds)
    placer = network_lib.PlacerNetwork(self.policy.replace(seed=problem.seed))
    return trainer_lib.Trainer(environment, placer,
                               network_lib.features_to_tensors(features),
                               self.config, problem.seed,
                               np.empty((0, environment.num_units),
                                        np.int32), reference_s)
