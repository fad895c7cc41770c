"""The devices of a TensorFlow cluster, and one that is not there."""

import socket

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import remote_devices
from gdp_grappler.cluster import resolve

_TASKS = ('/job:ps/replica:0/task:0', '/job:ps/replica:0/task:1')


def test_devices_of_two_tasks():
  cluster = remote_devices.of_devices('mine',
                                      [(f'{_TASKS[0]}/device:GPU:0', 8 << 30),
                                       (f'{_TASKS[0]}/device:CPU:0', 1 << 30),
                                       (f'{_TASKS[0]}/device:CPU:1', 1 << 30),
                                       (f'{_TASKS[1]}/device:CPU:0', 1 << 30)])
  assert [d.type for d in cluster.devices] == ['CPU', 'CPU', 'CPU', 'GPU']
  # The CPUs of one task are the same cores; those of the other are not.
  np.testing.assert_array_equal(cluster.compute_units, [0, 0, 1, 2])
  np.testing.assert_array_equal(cluster.memory_pools, [0, 0, 1, 2])
  latency_s, bytes_per_s, _ = cluster.link_arrays
  assert latency_s[0, 2] > latency_s[0, 3] > latency_s[0, 1] > 0
  assert bytes_per_s[0, 2] < bytes_per_s[0, 3] < bytes_per_s[0, 1]
  [note] = cluster.notes
  assert 'assumed' in note and 'V100' in note


def test_messages_of_a_task_share_its_network():
  name = '/job:ps/replica:0/task:{}/device:CPU:0'.format
  cluster = remote_devices.of_devices('mine',
                                      [(name(i), 1 << 30) for i in range(3)])
  wires = {(l.source, l.target): set(l.channels) for l in cluster.links}
  assert wires[name(0), name(1)] & wires[name(0), name(2)]
  assert wires[name(1), name(0)] & wires[name(2), name(0)]
  assert not wires[name(0), name(1)] & wires[name(1), name(0)]


def test_more_cores_compute_faster():

  def flops(cores):
    device, = remote_devices.of_devices(
        'mine', [(f'{_TASKS[0]}/device:CPU:0', 1 << 30)], cores).devices
    return device.peak_flops * device.slots

  assert flops(8) == 8 * flops(1)


def test_nobody_there():
  with socket.socket() as listener:
    listener.bind(('localhost', 0))  # Does not listen: connections fail.
    target = f'grpc://localhost:{listener.getsockname()[1]}'
    with pytest.raises(errors.ClusterError, match=target) as raised:
      remote_devices.remote_cluster(target, timeout_s=2)
  assert '\n' not in str(raised.value)


def test_somebody_who_does_not_answer(monkeypatch):
  """For these seconds, `gdp` showed that TensorFlow was being loaded."""
  shown = []
  monkeypatch.setattr(remote_devices.progress, 'doing', shown.append)
  with socket.socket() as listener:
    listener.bind(('localhost', 0))
    listener.listen()
    target = f'grpc://localhost:{listener.getsockname()[1]}'
    with pytest.raises(errors.ClusterError, match='cannot be reached'):
      remote_devices.remote_cluster(target, timeout_s=2)
  assert shown == [f'connecting to {target}']


@pytest.mark.parametrize('text', [
    'grpc://', 'grpc://host', 'grpc://host:port', 'grpc:host:1', 'grpc://:1',
    'grpc://a b:1', 'grpc://host:1/path'
])
def test_not_a_target(text):
  with pytest.raises(errors.ClusterError, match='is not a target'):
    resolve.resolve(text)


def test_addresses_may_be_numbers():
  for text in ('grpc://10.0.0.1:2222', 'grpc://[::1]:2222'):
    remote_devices.check_target(text)
