from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np

from gdp_grappler.placers.policy import balanced_odds


def _loads(logits, seconds):
  devices = logits.argmax(axis=1)
  return np.bincount(devices, seconds[np.arange(len(devices)), devices],
                     logits.shape[1])


def test_those_who_like_the_first_least_go_to_the_second():
  logits = np.array([[5., 1.], [5., 4.], [5., 2.], [5., 4.5]])
  found = balanced_odds.balance(logits, np.ones((4, 2)))
  assert found.argmax(axis=1).tolist() == [0, 1, 0, 1]


def test_a_device_that_is_far_slower_gets_no_share():
  logits = np.tile([0., 3., 2.9], (6, 1)) + np.arange(6)[:, None] * [0, 0, .01]
  seconds = np.tile([50., 1., 1.], (6, 1))
  devices = balanced_odds.balance(logits, seconds).argmax(axis=1)
  assert devices.tolist() == [1, 1, 1, 2, 2, 2]


def test_what_may_not_be_stays_so():
  logits = np.array([[-np.inf, 0.], [1., 0.], [1., 0.], [-np.inf, 0.]])
  devices = balanced_odds.balance(logits, np.ones((4, 2))).argmax(axis=1)
  assert devices.tolist() == [1, 0, 0, 1]


def test_one_device_has_all():
  logits = np.zeros((3, 1))
  assert balanced_odds.balance(logits, np.ones((3, 1))) is logits


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 40), st.integers(2, 6))
def test_the_busiest_has_no_more_to_do_than_before(seed, sets, devices):
  rng = np.random.default_rng(seed)
  logits = rng.normal(size=(sets, devices)) + 3 * rng.normal(size=devices)
  seconds = rng.random((sets, 1)) * np.ones(devices)
  found = balanced_odds.balance(logits, seconds)
  assert _loads(found, seconds).max() <= _loads(logits, seconds).max() + 1e-12
  # The handicap of a device is the same for all sets.
  shift = logits - found
  np.testing.assert_allclose(shift, np.tile(shift[:1], (sets, 1)), atol=1e-9)
