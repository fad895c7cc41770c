import pytest
import tensorflow as tf

from gdp_grappler import errors
from gdp_grappler.cluster import local_devices

_TASK = '/job:localhost/replica:0/task:0/device:'


def test_logical_cpus_share_their_compute_and_memory():
  cluster = local_devices.local_cluster(
      [_TASK + 'CPU:1', _TASK + 'CPU:0', _TASK + 'CPU:2'])
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'CPU:1', 'CPU:2']
  assert len(set(cluster.compute_units)) == len(set(cluster.memory_pools)) == 1
  assert cluster.devices[0].memory_bytes > 1 << 28


def test_cpus_come_first_and_other_types_are_left_out():
  cluster = local_devices.local_cluster(
      [_TASK + 'GPU:1', _TASK + 'XLA_CPU:0', _TASK + 'GPU:0', _TASK + 'CPU:0'])
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'GPU:0', 'GPU:1']
  assert cluster.host == 0


def test_numbers_are_numbers():
  names = [f'{_TASK}CPU:{i}' for i in (10, 9, 0)]
  cluster = local_devices.local_cluster(names)
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'CPU:9', 'CPU:10']


def test_a_cpu_and_a_gpu_are_joined_by_pcie():
  cluster = local_devices.local_cluster([_TASK + 'CPU:0', _TASK + 'GPU:0'])
  latency, bandwidth, _ = cluster.link_arrays
  assert latency[0, 1] == 1e-5 and bandwidth[1, 0] == 12e9


def test_without_names_the_devices_of_the_process():
  cluster = local_devices.local_cluster()
  expected = [d.name for d in tf.config.list_logical_devices('CPU')]
  assert [d.name.rsplit('/', 1)[1] for d in cluster.devices
          if d.type == 'CPU'] == [n.rsplit('/', 1)[1] for n in expected]


def test_no_cpu():
  with pytest.raises(errors.ClusterError, match='no CPU device'):
    local_devices.local_cluster([_TASK + 'GPU:0'])
