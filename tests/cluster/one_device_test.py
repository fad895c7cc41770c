"""Everything on one device, once for devices of a kind."""

import dataclasses

import numpy as np
import pytest

from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import presets
from helpers import clusters


def _ones(cluster, groups=2):
  return np.ones((groups, cluster.num_devices))


def test_what_may_not_be_there_goes_to_the_host():
  cluster = clusters.make_cluster(2)
  allowed = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1]], bool)
  assert cluster.host == 0
  np.testing.assert_array_equal(one_device.on_each(cluster, allowed),
                                [[0, 0, 2], [1, 1, 2], [2, 0, 2]])


@pytest.mark.parametrize('name, kinds', [('1xP100', 2), ('8xV100', 2),
                                         ('2x4xP100-eth10', 4)])
def test_cards_of_a_host_are_alike(name, kinds):
  cluster = presets.preset(name)
  rows = one_device.of_each_kind(cluster, _ones(cluster) > 0, _ones(cluster))
  assert len(rows) == kinds
  # Of each kind the first.
  assert (rows[:2] == [[0, 0], [1, 1]]).all()


def test_what_differs_is_of_another_kind():
  cluster = presets.preset('3xV100')
  allowed, seconds = _ones(cluster) > 0, _ones(cluster)
  assert len(one_device.of_each_kind(cluster, allowed, seconds)) == 2
  seconds[1, 2] = 2  # An op is slower there.
  assert len(one_device.of_each_kind(cluster, allowed, seconds)) == 3
  forbidden = allowed.copy()
  forbidden[0, 1] = False
  assert len(one_device.of_each_kind(cluster, forbidden, _ones(cluster))) == 3
  devices = [
      dataclasses.replace(device, memory_bytes=1)
      if device.name.endswith('GPU:1') else device for device in cluster.devices
  ]
  cluster = dataclasses.replace(cluster, devices=devices)
  assert len(one_device.of_each_kind(cluster, allowed, _ones(cluster))) == 3


def test_a_cpu_that_needs_a_gpu_does_not_stand_alone():
  """A mix of a CPU and a GPU was called the best single device."""
  cluster = presets.preset('2xP100')
  allowed, seconds = _ones(cluster) > 0, _ones(cluster)
  alone = one_device.of_each_kind(cluster, allowed, seconds, alone=True)
  assert alone.tolist() == [[0, 0], [1, 1]]
  allowed[0] = [False, True, True]
  mixed = one_device.of_each_kind(cluster, allowed, seconds)
  assert mixed[0].tolist() == [1, 0]
  alone = one_device.of_each_kind(cluster, allowed, seconds, alone=True)
  assert alone.tolist() == [[1, 1], [2, 2]]
  allowed[0] = [True, False, False]  # An op of the host is on it in any case.
  alone = one_device.of_each_kind(cluster, allowed, seconds, alone=True)
  assert alone.tolist() == [[0, 0], [0, 1]]
