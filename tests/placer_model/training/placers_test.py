"""GDP-one as a placer; that it learns is told by `trainer_test`."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler import errors
from helpers import clusters
from helpers import graphs
from helpers import problems
from placer_model import config as config_lib
from placer_model.training import placers
from placer_model.training import train_config

# Quick to trace.
_NETWORK = config_lib.preset('paper').replace(hidden_units=32, graph_layers=0,
                                              transformer_layers=0,
                                              superposition=False)
_PAPER = config_lib.preset('paper')
_CONFIG = dataclasses.replace(train_config.preset('paper'), iterations=25,
                              rollouts=16, epochs=4, learning_rate=5e-3,
                              entropy_bonus=3e-3, temperature=0.)
_TYPES = ('MatMul', 'Conv2D', 'Tanh', 'Relu')
_LENGTH = 8
_OP_S = .01


@pytest.fixture(autouse=True)
def _small_network(monkeypatch):
  monkeypatch.setattr(config_lib, 'preset', lambda name: _NETWORK)


def _placer(**changes):
  return placers.GdpPlacer(config=dataclasses.replace(_CONFIG, **changes))


def _problem(types=_TYPES, **cluster):
  """Chains that know nothing of each other; a transfer costs as an op."""
  count = len(types) * _LENGTH
  edges = [(i, i + 1, 10_000_000) for i in range(count - 1) if (i + 1) % _LENGTH
          ]
  graph = graphs.make_graph(edges, count, op_types=np.repeat(types,
                                                             _LENGTH).tolist(),
                            param_bytes=np.full(count, 100))
  seconds = np.tile((10 * _OP_S, _OP_S, _OP_S), (count, 1))
  return problems.make(
      graph,
      clusters.make_cluster(2, latency_s=0., bandwidth_bytes_per_s=1e9,
                            **cluster), seconds)


def test_returns_the_best_placement_it_sampled():
  problem = dataclasses.replace(_problem(), time_budget_s=0.)
  placement = _placer(iterations=10**9).place(problem)
  assert not placement.violations(problem.graph)
  sampled = _placer()._trainer(problem)
  assert problems.seconds_of(problem,
                             placement) == sampled.step().best_step_time_s


def test_nothing_fits():
  with pytest.raises(errors.InfeasiblePlacementError, match='None of 32 sampl'):
    _placer(iterations=2).place(_problem(memory_bytes=50))


def test_network_parts_equal_chains(monkeypatch):
  """Chains that look alike get one device each, two on either.

  A network that sees features and neighbours alone gives all of them the same
  devices, and has only one device's step to gain from.
  """
  monkeypatch.setattr(config_lib, 'preset', lambda name: _PAPER)
  problem = _problem(types=('MatMul',) * 4)
  config = dataclasses.replace(train_config.preset('paper'), iterations=60)
  trainer = placers.GdpPlacer(config=config)._trainer(problem)
  assert trainer.reference_s == pytest.approx(32 * _OP_S)
  reports = [trainer.step() for _ in range(config.iterations)]
  assert trainer.say().step_time_s[0] < 20.5 * _OP_S
  assert trainer.state.best_step_time_s < 18.5 * _OP_S
  assert reports[-1].entropy < 0.5 * reports[0].entropy
