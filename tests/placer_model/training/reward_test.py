"""Reward and advantage against numbers worked out by hand."""

import numpy as np

from placer_model.training import reward


def test_reward_is_minus_the_root_of_the_normalised_time():
  values = reward.rewards(np.array([1.0, 4.0, 0.25]), np.array([True] * 3),
                          reference_s=1.0)
  np.testing.assert_allclose(values, [-1.0, -2.0, -0.5])


def test_reference_is_the_unit_of_time():
  values = reward.rewards(np.array([0.018]), np.array([True]),
                          reference_s=0.002)
  np.testing.assert_allclose(values, [-3.0])


def test_invalid_placement_gets_minus_ten():
  values = reward.rewards(np.array([np.inf, 1.0]), np.array([False, True]),
                          reference_s=1.0)
  np.testing.assert_allclose(values, [-10.0, -1.0])


def test_advantage_is_against_all_previous_trials():
  # No predecessor: against their own mean, -2.
  np.testing.assert_allclose(reward.advantages(np.array([-1., -3.]), 0, 0.),
                             [1., -1.])
  # Against the mean of -1, -3 and -5.
  np.testing.assert_allclose(reward.advantages(np.array([0., -3.]), 3, -9.),
                             [3., 0.])
