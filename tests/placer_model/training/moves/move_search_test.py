import dataclasses

import pytest

from gdp_grappler.placers import registry
from gdp_grappler.placers.search.moves import shipped_moves
from helpers import graphs
from helpers import problems
from placer_model.training.moves import move_config
from placer_model.training.moves import move_learner
from placer_model.training.moves import move_search
from placer_model.training.moves import move_trainer


@pytest.fixture(name='trainer')
def _trainer():
  problem = problems.make(graphs.random_graph(1, 120))
  config = move_config.MoveConfig(rollouts=4, draws=8)
  return move_trainer.MoveTrainer(
      problem, move_learner.MoveLearner(shipped_moves.network(), config),
      config, 0)


def test_gdp_is_asked_and_remembered(trainer):
  state, problem = trainer.state, trainer.problem
  move_search.ask_gdp(trainer, problem.evaluator, .5)
  assert state.by_gdp.shape == (1, problem.graph.num_groups)
  assert state.best_s['gdp'] == state.best_step_time_s
  assert state.evaluations['gdp'] > 10 and 0 < state.gdp_s <= state.seconds
  alone = registry.create('single_device').place(problem)
  assert state.best_step_time_s <= problems.seconds_of(problem, alone)


def test_the_search_goes_on_from_the_best(trainer):
  network = shipped_moves.network()
  move_search.search_on(trainer, network, 64, None)
  assert not trainer.state.total_evaluations  # There is nothing to begin with.
  trainer.begin([registry.create('single_device').place(trainer.problem)])
  before = trainer.state.best_step_time_s
  move_search.search_on(trainer, network, 64, None)
  state = trainer.state
  assert state.best_s['search'] == state.best_step_time_s < before
  assert 64 <= state.evaluations['search'] <= 80


def test_the_search_takes_the_network_it_is_given(trainer, monkeypatch):
  network = dataclasses.replace(shipped_moves.network(), bias=[1., 2.])
  asked = []
  predict = type(network).predict
  monkeypatch.setattr(
      type(network), 'predict', lambda self, features:
      (asked.append(self.digest), predict(self, features))[1])
  trainer.begin([registry.create('single_device').place(trainer.problem)])
  move_search.search_on(trainer, network, 64, None)
  assert {*asked} == {network.digest}
