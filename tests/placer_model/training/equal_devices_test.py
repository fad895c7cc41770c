"""Devices that may be exchanged."""

import dataclasses

import numpy as np
import pytest

from helpers import clusters
from placer_model.training import equal_devices


def _changed(cluster, device, **changes):
  devices = list(cluster.devices)
  devices[device] = dataclasses.replace(devices[device], **changes)
  return dataclasses.replace(cluster, devices=tuple(devices))


def test_equal_cards_are_equal_and_the_host_is_not():
  cluster = clusters.make_cluster(3)
  assert equal_devices.equal_sets(cluster, np.ones((2, 4), bool)) == [(1, 2, 3)]
  assert not equal_devices.equal_sets(clusters.make_cluster(1),
                                      np.ones((2, 2), bool))


@pytest.mark.parametrize(
    'changes', [{'peak_flops': 1.}, {'memory_bytes': 1}, {'compute': 'shared'}])
def test_what_differs_is_no_twin(changes):
  cluster = clusters.make_cluster(3)
  if 'compute' in changes:
    cluster = _changed(cluster, 1, **changes)
  cluster = _changed(cluster, 3, **changes)
  allowed = np.ones((2, 4), bool)
  assert equal_devices.equal_sets(
      cluster, allowed) == ([] if 'compute' in changes else [(1, 2)])


def test_what_units_may_have_tells_devices_apart():
  allowed = np.ones((2, 4), bool)
  allowed[1, 2] = False
  assert equal_devices.equal_sets(clusters.make_cluster(3), allowed) == [(1, 3)]


def test_links_tell_devices_apart():
  cluster = clusters.make_cluster(3)
  links = tuple(
      dataclasses.replace(link, latency_s=2.) if {link.source, link.target} ==
      {cluster.devices[1].name, cluster.devices[2].name} else link
      for link in cluster.links)
  found = equal_devices.equal_sets(dataclasses.replace(cluster, links=links),
                                   np.ones((2, 4), bool))
  assert found == [(1, 2)]


def test_rollouts_become_the_image_that_is_liked_best():
  liking = np.log([[.1, .8, .1], [.1, .1, .8], [.2, .4, .4]])
  decisions = np.array([[1, 2, 0], [2, 1, 1], [0, 1, 1]])
  found = equal_devices.aligned(decisions, liking, [(1, 2)])
  assert found.tolist() == [[1, 2, 0], [1, 2, 2], [0, 2, 2]]


def test_images_say_the_same_of_who_is_with_whom():
  rng = np.random.default_rng(0)
  decisions = rng.integers(0, 5, (20, 30))
  liking = rng.normal(size=(30, 5))
  found = equal_devices.aligned(decisions, liking, [(1, 2, 3)])
  units = np.arange(30)
  for before, after in zip(decisions, found):
    np.testing.assert_array_equal(before[:, None] == before,
                                  after[:, None] == after)
    assert liking[units, after].sum() >= liking[units, before].sum() - 1e-9
    for other in (0, 4):
      np.testing.assert_array_equal(before == other, after == other)
