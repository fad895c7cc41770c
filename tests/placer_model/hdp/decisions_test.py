import numpy as np

from placer_model.hdp import decisions

_T, _F = True, False


def test_movable_members_decide_what_a_group_may_choose():
  allowed = np.array([[_T, _F, _F], [_T, _F, _T], [_T, _F, _F], [_F, _T, _T]])
  grouping = np.array([0, 0, 1, 3])
  np.testing.assert_array_equal(
      decisions.allowed_devices(grouping, 4, allowed),
      [
          [_T, _F, _T],  # of its one movable member
          [_T, _F, _F],  # of its only member
          [_T, _T, _T],  # nobody is in it
          [_F, _T, _T]
      ])


def test_members_that_cannot_follow_go_to_the_host():
  allowed = np.array([[_T, _F, _F], [_T, _T, _T], [_F, _F, _T]])
  devices = decisions.devices_of_units(np.array([0, 0, 1]),
                                       np.array([[1, 1], [2, 0]]), allowed,
                                       host=0)
  np.testing.assert_array_equal(devices, [[0, 1, 2], [0, 2, 2]])
