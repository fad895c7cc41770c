"""Credit of single decisions, in cases that a pencil solves."""

import itertools

import numpy as np
import pytest

from placer_model.training import credit

_UNIFORM = np.full((2, 2), 0.5)
_ALL_PAIRS = np.array(list(itertools.product(range(2), repeat=2)))


def test_effects_of_a_sum_are_found_exactly():
  """Device 1 gains 3 for the first unit and loses 1 for the second."""
  values = 3.0 * _ALL_PAIRS[:, 0] - 1.0 * _ALL_PAIRS[:, 1] + 7.0
  found = credit.effects(_UNIFORM, _ALL_PAIRS, values, 1e-9).values
  np.testing.assert_allclose(found, [[-1.5, 1.5], [0.5, -0.5]], atol=1e-6)


def test_what_another_unit_did_is_not_credited():
  """Unit 1 went with unit 0 in three of four rollouts, and had no part."""
  decisions = np.array([[1, 1], [1, 1], [0, 0], [0, 1]])
  found = credit.effects(_UNIFORM, decisions, decisions[:, 0] * 1.0,
                         1e-9).values
  np.testing.assert_allclose(found, [[-0.5, 0.5], [0, 0]], atol=1e-6)


def test_units_that_always_go_together_share_the_credit():
  decisions = np.array([[0, 0], [1, 1]])
  found = credit.effects(_UNIFORM, decisions, np.array([0.0, 1.0]), 1e-9).values
  np.testing.assert_allclose(found, [[-0.25, 0.25]] * 2, atol=1e-6)


def test_mean_under_the_policy_is_zero():
  rng = np.random.default_rng(0)
  policy = rng.dirichlet(np.ones(3), 5)
  found = credit.effects(policy, rng.integers(0, 3, (8, 5)), rng.normal(size=8),
                         0.1).values
  np.testing.assert_allclose((policy * found).sum(axis=1), 0, atol=1e-12)


def test_a_larger_penalty_credits_less():
  values = 1.0 * _ALL_PAIRS[:, 0]
  sizes = [
      np.abs(credit.effects(_UNIFORM, _ALL_PAIRS, values, ridge).values).max()
      for ridge in (0.01, 0.1, 1.0)
  ]
  assert sizes == sorted(sizes, reverse=True)
  assert sizes[-1] < 0.7 * sizes[0]


@pytest.mark.parametrize('decisions', [np.zeros((4, 2), int), [[0, 1]]])
def test_nothing_to_compare_is_no_credit(decisions):
  values = np.arange(len(decisions)) * 1.0
  found = credit.effects(_UNIFORM, np.array(decisions), values, 0.1)
  np.testing.assert_allclose(found.values, 0, atol=1e-12)


def test_chance_is_what_effects_are_if_rollouts_are_mere_luck():
  rng = np.random.default_rng(0)
  policy = np.full((20, 3), 1 / 3)
  drawn = [
      credit.effects(policy, rng.integers(0, 3, (16, 20)), rng.normal(size=16),
                     0.3) for _ in range(300)
  ]
  size = np.sqrt(np.mean([(found.values**2).mean() for found in drawn]))
  chance = np.sqrt(np.mean([found.chance**2 for found in drawn]))
  assert size == pytest.approx(chance, rel=0.05)


def test_what_decisions_have_done_is_more_than_chance():
  rng = np.random.default_rng(0)
  decisions = rng.integers(0, 2, (64, 2))
  found = credit.effects(_UNIFORM, decisions, 1.0 * decisions[:, 0], 0.01)
  assert np.abs(found.values[0]).min() > 5 * found.chance
  assert np.abs(found.values[1]).max() < found.chance


def test_without_temperature_advantages_are_in_units_of_chance():
  effects = credit.Effects(np.array([[-0.03, 0.03], [0.0, 0.0]]), 0.01)
  np.testing.assert_allclose(credit.tempered(_UNIFORM, effects, 0.0),
                             [[-3, 3], [0, 0]])


def test_a_policy_that_follows_ends_at_the_softmax():
  """There nothing is left to gain: all advantages are zero."""
  effects = credit.Effects(np.array([[-0.4, 0.8, -0.4]]), 0.5)
  policy = np.exp(effects.values / 0.5 / 0.7)
  policy /= policy.sum()
  found = credit.tempered(policy, effects, 0.7)
  np.testing.assert_allclose(found - (policy * found).sum(), 0, atol=1e-6)


def test_rare_decisions_become_worth_trying():
  found = credit.tempered(np.array([[0.99, 0.01, 0.0]]),
                          credit.Effects(np.zeros((1, 3)), 0.0), 1.0)
  assert found[0, 1] > 1 > 0 > found[0, 0]
  assert np.isfinite(found).all()


def test_scores_of_two():
  """-log(3/4) and -log(1/4), around their mean."""
  np.testing.assert_allclose(credit.scores(np.array([-10.0, -1.0])),
                             [-np.log(3) / 2, np.log(3) / 2])


def test_scores_know_ranks_alone():
  rewards = np.array([-1.2, -10.0, -1.1, -1.3, -10.0])
  scores = credit.scores(rewards)
  assert scores.mean() == pytest.approx(0)
  assert scores[1] == scores[4] == scores.min()
  assert list(np.argsort(scores)[2:]) == [3, 0, 2]
  np.testing.assert_allclose(credit.scores(np.exp(rewards)), scores)


def test_the_best_is_worth_more_than_the_worst_costs():
  scores = credit.scores(np.arange(96.0))
  assert scores.max() > 3 * -scores.min()


def test_equal_rewards_are_worth_nothing():
  np.testing.assert_allclose(credit.scores(np.full(7, -10.0)), 0, atol=1e-12)
