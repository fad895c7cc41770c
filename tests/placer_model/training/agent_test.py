"""tf-agents' PPO with units on the batch axis."""

import dataclasses

import numpy as np

from helpers import toy_training
from placer_model.training import agent as agent_lib
from placer_model.training import optimizers
from placer_model.training import train_config

_CONFIG = dataclasses.replace(train_config.preset('paper'), learning_rate=0.1,
                              entropy_bonus=0.0, epochs=1)
_ALLOWED = np.array([[True, True, True], [True, True, False]])


class _CountingPlacer(toy_training.TablePlacer):
  calls = 0

  def call(self, features):
    type(self).calls += 1
    return super().call(features)


def _agent(placer=None, **changes):
  placer = placer or toy_training.TablePlacer(_ALLOWED)
  config = dataclasses.replace(_CONFIG, **changes)
  return agent_lib.PlacementAgent(placer, {}, 2, 3, config,
                                  optimizers.Optimizers.make(config).ppo)


def _change(decisions, advantages, **changes):
  """[M, D], how one update changes the probabilities."""
  agent = _agent(**changes)
  before = agent.probabilities()
  agent.train(before, np.array(decisions), np.full(len(advantages), -1.0),
              np.array(advantages))
  return agent.probabilities() - before


def test_untrained_table_is_uniform_over_the_allowed_devices():
  np.testing.assert_allclose(_agent().probabilities(),
                             [[1 / 3] * 3, [1 / 2, 1 / 2, 0]], rtol=1e-6)


def test_each_unit_learns_its_own_decision():
  change = _change([[2, 0], [1, 1]], [1.0, -1.0])
  assert change[0, 2] > 0.01 and change[0, 1] < -0.01
  assert change[1, 0] > 0.01 and change[1, 1] < -0.01
  np.testing.assert_allclose(change[1, 2], 0, atol=1e-7)


def test_bias_term_survives_the_normalisation_of_tf_agents():
  """All rollouts better than before: all become likelier, or none does."""
  rollouts = [[2, 0], [2, 0]]
  above_history = _change(rollouts, [1.0, 1.0])
  assert above_history[0, 2] > 0.01
  assert above_history[1, 0] > 0.01
  below_history = _change(rollouts, [-1.0, -1.0])
  assert below_history[0, 2] < -0.01


def test_each_decision_has_an_advantage_of_its_own():
  agent = _agent()
  before = agent.probabilities()
  agent.train_each(before, np.array([[-1.0, -1.0, 2.0], [1.0, -1.0, 9.0]]))
  change = agent.probabilities() - before
  assert change[0, 2] > 0.01 > -0.01 > change[0, 0]
  assert change[1, 0] > 0.01 > -0.01 > change[1, 1]
  np.testing.assert_allclose(change[1, 2], 0, atol=1e-7)  # Not allowed.


def test_rare_decisions_count_for_little():
  """By their probability: the objective is PPO's expected one."""
  placer = toy_training.TablePlacer(_ALLOWED)
  placer.table.assign([[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
  agent = _agent(placer, learning_rate=1e-3)
  before = agent.probabilities()
  agent.train_each(before, np.array([[0.0, -1.0, 1.0], [0.0, 1.0, 0.0]]))
  change = placer.table.numpy() - [[0.0, 0.0, 0.0], [9.0, 0.0, 0.0]]
  assert change[0, 2] > 5e-4
  assert abs(change[1]).max() < 0.5 * change[0, 2]


def test_learning_rate_can_be_lowered():
  changes = []
  for share in (1.0, 0.1):
    agent = _agent()
    agent.slow_down(share)
    before = agent.probabilities()
    agent.train_each(before, np.array([[-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]]))
    changes.append(np.abs(agent.probabilities() - before).max())
  assert changes[1] < 0.2 * changes[0]


def test_entropy_bonus_spreads_a_decided_policy():
  placer = toy_training.TablePlacer(_ALLOWED)
  placer.table.assign([[3.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
  agent = _agent(placer, entropy_bonus=0.1)
  before = agent.probabilities()
  agent.train(before, np.zeros((2, 2), int), np.full(2, -1.0), np.zeros(2))
  assert (agent.probabilities()[:, 0] < before[:, 0]).all()


def test_ratio_is_clipped_per_decision():
  """Beyond 1 + epsilon a good decision has no gradient any more."""
  agent = _agent(epochs=60, learning_rate=0.02, clip_ratio=0.2)
  before = agent.probabilities()
  agent.train(before, np.array([[2, 0], [1, 1]]), np.full(2, -1.0),
              np.array([1.0, -1.0]))
  ratio = agent.probabilities() / np.maximum(before, 1e-9)
  assert 1.2 <= ratio[0, 2] < 1.5
  assert 1.2 <= ratio[1, 0] < 1.5


def test_one_forward_pass_serves_all_rollouts():
  calls = []
  for rollouts in (2, 64):
    _CountingPlacer.calls = 0
    agent = _agent(_CountingPlacer(_ALLOWED))
    built = _CountingPlacer.calls
    agent.train(np.full((2, 3), 0.3), np.ones((rollouts, 2), int),
                np.full(rollouts, -1.0), np.linspace(-1, 1, rollouts))
    calls.append(_CountingPlacer.calls - built)
  assert calls[0] == calls[1] <= 2
