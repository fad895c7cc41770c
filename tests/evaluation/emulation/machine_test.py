"""Tests of gdp_grappler.evaluation.emulation.machine."""

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import presets
from gdp_grappler.evaluation.emulation import machine
from helpers import clusters


def test_gpus_come_before_the_host():
  made = machine.Machine(clusters.make_cluster(2))
  np.testing.assert_array_equal(made.order, [1, 2, 0])
  assert [name.split('device:')[1] for name in made.session_devices
         ] == ['CPU:0', 'GPU:0', 'GPU:1']


def test_links_are_in_that_order():
  cluster = presets.preset('2xP100')
  latency_s, bytes_per_s, channels = cluster.link_arrays
  own_latency_s, own_bytes_per_s, own_channels = machine.Machine(cluster).links
  assert own_latency_s[0, 2] == latency_s[1, 0]
  assert own_bytes_per_s[2, 1] == bytes_per_s[0, 2]
  assert own_channels[0, 1].tolist() == channels[1, 2].tolist()
  assert (own_channels[0, 0] == -1).all()


def test_threads_for_blocked_devices_and_busy_hosts():
  cluster = presets.preset('4xP100')
  made = machine.Machine(cluster)
  assert made.inter_op_threads >= 4 + 2 + cluster.devices[cluster.host].slots


@pytest.mark.parametrize('name', ['cpu', '2x2xV100-ib'])
def test_one_host_with_gpus_is_needed(name):
  with pytest.raises(errors.MeasurementError, match='cannot be emulated'):
    machine.Machine(presets.preset(name))


@pytest.mark.parametrize('shared', ['compute', 'memory'])
def test_gpus_are_whole(shared):
  cluster = clusters.make_cluster(2, **{shared: ['host', 'card', 'card']})
  with pytest.raises(errors.MeasurementError, match='GPU:0, GPU:1'):
    machine.Machine(cluster)
