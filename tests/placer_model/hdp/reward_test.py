import numpy as np

from placer_model.hdp import reward


def test_reward_is_minus_the_root_and_failing_is_charged():
  values = reward.rewards(np.array([8., 50., np.inf, 1e9]), 2., 100.)
  np.testing.assert_allclose(values, [-2., -5., -10., -10.])


def test_baseline_moves_after_it_was_used():
  baseline = reward.MovingBaseline(0.5)
  # The mean is the first baseline.
  np.testing.assert_allclose(baseline.advantages(np.array([-4., -6.])),
                             [1., -1.])
  assert baseline.value == -5.
  # Squares: 9 and 25, and the average (1 + 17) / 2.
  np.testing.assert_allclose(baseline.advantages(np.array([-2., 0.])),
                             [1., 5 / 3])
  assert baseline.value == -3.


def test_equal_rewards_have_no_advantage():
  flat = reward.MovingBaseline(0.5)
  assert (flat.advantages(np.array([-1., -1.])) == 0.).all()
