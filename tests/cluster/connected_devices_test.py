"""The devices of this process together with those of other hosts."""

import itertools

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import connected_devices
from gdp_grappler.cluster import local_devices
from gdp_grappler.cluster import resolve

_OWN = '/job:localhost/replica:0/task:0'
_OTHERS = '/job:worker/replica:0/task:0', '/job:worker/replica:0/task:1'


def test_own_devices_are_the_local_cluster():
  assert resolve.resolve('local') == local_devices.local_cluster()
  assert connected_devices.own_task() == _OWN


def test_devices_of_other_tasks_are_machines_of_their_own():
  names = [f'{task}/device:CPU:0' for task in _OTHERS]
  cluster = resolve.resolve(
      'local',
      ['/device:CPU:0', '/device:CPU:1', f'{_OTHERS[0]}/device:GPU:0', *names])
  assert [d.name for d in cluster.devices] == [
      f'{_OWN}/device:CPU:0', f'{_OWN}/device:CPU:1', *names,
      f'{_OTHERS[0]}/device:GPU:0'
  ]
  # The CPUs of this process are the same cores; no others are.
  assert cluster.compute_units.tolist() == [0, 0, 1, 2, 3]
  assert cluster.memory_pools.tolist() == [0, 0, 1, 2, 3]
  links = {(link.source, link.target): link for link in cluster.links}
  assert set(links) == set(itertools.permutations(cluster.device_names, 2))
  here, there = cluster.device_names[0], names[0]
  within = links[here, cluster.device_names[1]]
  assert within.bandwidth_bytes_per_s > 100 * links[here,
                                                    there].bandwidth_bytes_per_s
  # What leaves this process for whomever takes turns; there and back do not.
  wires = set(links[here, there].channels)
  assert wires & set(links[here, names[1]].channels)
  assert not wires & set(links[there, here].channels)
  assert all(d.copy_bytes_per_s for d in cluster.devices if d.type == 'CPU')
  assert 'between tasks' in cluster.notes[-1]


def test_other_types_of_device_are_left_out():
  cluster = resolve.resolve('local',
                            ['/device:CPU:0', f'{_OTHERS[0]}/device:TPU:0'])
  assert cluster.device_names == (f'{_OWN}/device:CPU:0',)


def test_a_server_that_places_has_its_devices_alone():
  """It got a CPU of a task that the session did not have."""
  remote = [f'{_OTHERS[0]}/device:CPU:{i}' for i in range(2)]
  cluster = resolve.resolve('local', remote)
  assert cluster.device_names == tuple(remote)
  assert cluster.compute_units.tolist() == [0, 0]
  names = [f'{task}/device:CPU:0' for task in _OTHERS]
  cluster = resolve.resolve('local', names)
  assert cluster.device_names == tuple(names)
  assert cluster.compute_units.tolist() == [0, 1]


def test_this_process_has_a_cpu():
  with pytest.raises(errors.ClusterError):
    resolve.resolve('local', ['/device:GPU:0', f'{_OTHERS[0]}/device:CPU:0'])
