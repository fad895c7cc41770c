import numpy as np

from placer_model.hdp import reward


def test_reward_is_minus_the_root_and_failing_is_charged():
  values = reward.rewards(np.array([8., 50., np.inf, 1e9]), 2., 100.)
  np.testing.assert_allclose(values, [-2., -5., -10., -10.])


def test_baseline_moves_after_it_was_used():
  baseline = reward.MovingBaseline(0.9, -10.)
  np.testing.assert_allclose(baseline.advantages(np.array([-2., -4.])),
                             [8., 6.])
  assert abs(baseline.value - -9.3) < 1e-12
  np.testing.assert_allclose(baseline.advantages(np.array([-9.3])), [0.])


def test_first_mean_stands_in_for_a_baseline():
  baseline = reward.MovingBaseline(0.5)
  np.testing.assert_allclose(baseline.advantages(np.array([-1., -3.])),
                             [1., -1.])
  np.testing.assert_allclose(baseline.advantages(np.array([0.])), [2.])
  assert baseline.value == -1.


def test_normalized_advantages():
  baseline = reward.MovingBaseline(0.5, 0., normalize=True)
  # Squares 9 and 1: the first mean is 5.
  np.testing.assert_allclose(baseline.advantages(np.array([3., -1.])),
                             np.array([3., -1.]) / 5**0.5)
  # The baseline is 0.5; squares 0.25, and their average (5 + 0.25) / 2.
  np.testing.assert_allclose(baseline.advantages(np.array([1.])),
                             [0.5 / 2.625**0.5])
  flat = reward.MovingBaseline(0.5, normalize=True)
  assert (flat.advantages(np.array([-1., -1.])) == 0.).all()
