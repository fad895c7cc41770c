"""Which groups may be joined."""

import numpy as np

from gdp_grappler.graph import choices


def test_what_may_be_on_more_devices_joins_what_may_be_on_less():
  kinds = choices.kinds(np.array([[1, 1, 1], [0, 1, 1], [1, 1, 1]], bool))
  assert len(set(kinds.tolist())) == 1


def test_what_has_no_choice_stays_apart():
  kinds = choices.kinds(np.array([[1, 1, 1], [1, 0, 0], [0, 1, 0]], bool))
  assert len(set(kinds.tolist())) == 3


def test_of_two_sets_the_one_of_more_groups_is_joined():
  everywhere, left, right = [1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]
  kinds = choices.kinds(np.array([everywhere, left, right, right], bool))
  assert kinds[0] == kinds[2] == kinds[3] != kinds[1]


def test_sets_that_only_overlap_stay_apart():
  kinds = choices.kinds(np.array([[1, 1, 0], [0, 1, 1]], bool))
  assert kinds[0] != kinds[1]


def test_joined_groups_always_have_a_device_in_common():
  rng = np.random.default_rng(0)
  for _ in range(100):
    allowed = rng.random((30, 5)) < .6
    allowed[:, 0] |= ~allowed.any(axis=1)
    kinds = choices.kinds(allowed)
    common = choices.of_all(allowed, kinds, int(kinds.max()) + 1)
    assert common[np.unique(kinds)].any(axis=1).all()


def test_a_set_has_the_devices_that_all_of_it_have():
  allowed = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], bool)
  assert choices.of_all(allowed, np.array([0, 0, 1]),
                        2).tolist() == [[False, True, False],
                                        [True, False, True]]
