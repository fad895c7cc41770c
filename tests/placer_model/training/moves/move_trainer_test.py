import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from gdp_grappler.placers import registry
from gdp_grappler.placers.policy import policy_config
from gdp_grappler.placers.search.moves import shipped_moves
from gdp_grappler.workloads.synthetic import synthetic
from helpers import graphs
from helpers import problems
from placer_model.training.moves import move_config
from placer_model.training.moves import move_learner
from placer_model.training.moves import move_state
from placer_model.training.moves import move_trainer

_SMALL = move_config.MoveConfig(
    rollouts=12, episode_prices=12, draws=16, skill_drafts=2,
    drafts=policy_config.PolicyConfig(maps=1, cuts=0, schedules=2))


def _trainer(problem, config=_SMALL):
  tf.keras.utils.set_random_seed(0)
  return move_trainer.MoveTrainer(
      problem, move_learner.MoveLearner(shipped_moves.network(), config),
      config, 0)


def _begun(problem, config=_SMALL):
  trainer = _trainer(problem, config)
  trainer.begin([registry.create('single_device').place(problem)])
  return trainer


@pytest.fixture(name='problem', scope='module')
def _problem():
  return problems.make(graphs.random_graph(1, 120))


def test_an_iteration_prices_learns_and_remembers(problem):
  trainer = _begun(problem)
  before = trainer.learner.network().digest
  assert trainer.has_begun and trainer.state.evaluations['draft'] > 0
  report = trainer.step()
  state = trainer.state
  assert trainer.learner.network().digest != before
  assert report.iteration == state.iteration == 1
  assert state.evaluations['policy'] >= _SMALL.rollouts
  assert report.evaluations == state.total_evaluations
  assert report.best_step_time_s == problems.seconds_of(
      problem, trainer.best_placement())
  assert state.gains == [report.gain_per_price]


def test_equal_seeds_learn_the_same(problem):
  digests = []
  for _ in range(2):
    trainer = _begun(problem)
    trainer.step()
    digests.append(trainer.learner.network().digest)
  assert digests[0] == digests[1]


def test_offered_placements_are_where_episodes_start(problem):
  trainer = _begun(problem, dataclasses.replace(_SMALL, from_best=1.))
  offered = registry.create('gdp_policy').place(problem)
  trainer.offer([offered], move_state.GDP)
  assert trainer.state.best_origin == 'gdp'
  assert trainer.state.best_step_time_s == problems.seconds_of(problem, offered)


def test_a_graph_that_cannot_move_learns_nothing():
  problem = problems.make(graphs.make_graph(num_ops=1), seconds=[[1, 9, 9]])
  problem = dataclasses.replace(problem,
                                given_allowed=np.array([[True, False, False]]))
  trainer = _begun(problem)
  before = trainer.learner.network().digest
  report = trainer.step()
  assert report.gain_per_price == 0 and np.isfinite(report.best_step_time_s)
  assert trainer.learner.network().digest == before


def test_skill_does_not_depend_on_what_was_asked_before(problem):
  trainer = _begun(problem)
  network = shipped_moves.network()
  assert trainer.skill(network) == trainer.skill(network) > 0


def test_it_learns():
  """Episodes from the drafts gain more per price than with the start's."""
  drawn = synthetic.draw(np.random.default_rng(1),
                         synthetic.Config(ops=(300, 400), accelerators=(4, 4)))
  trainer = _begun(drawn.step.problem(), move_config.MoveConfig())
  start = trainer.learner.network()
  for _ in range(30):
    trainer.step()
  assert trainer.skill(trainer.learner.network()) > 1.05 * trainer.skill(start)
