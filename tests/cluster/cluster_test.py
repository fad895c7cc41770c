import dataclasses

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import presets
from helpers import clusters

_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'
_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'


def test_names_host_and_pools():
  cluster = clusters.make_cluster(2, compute=['c', 'g', 'g'],
                                  memory=['m', 'x', 'm'])
  assert cluster.device_names[:2] == (_CPU, _GPU)
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'GPU:0', 'GPU:1']
  assert cluster.host == 0 and cluster.num_devices == 3
  assert cluster.compute_units.tolist() == [0, 1, 1]
  assert cluster.memory_pools.tolist() == [0, 1, 0]
  assert cluster.pool_bytes.tolist() == [1 << 40, 1 << 40]


def test_plans_leave_a_margin_of_a_memory():
  cluster = clusters.make_cluster(2, memory=['m', 'x', 'x'])
  host, first, second = cluster.devices
  cluster = dataclasses.replace(
      cluster, devices=(host,
                        dataclasses.replace(first, memory_bytes=1000,
                                            memory_margin=.05),
                        dataclasses.replace(second, memory_bytes=1000,
                                            memory_margin=.2)))
  # Where two share a memory the larger margin counts.
  assert cluster.pool_bytes.tolist() == [1 << 40, 800]


@pytest.mark.parametrize('margin', [-.1, 1., 1.5, float('nan'), True, 'much'])
def test_a_margin_is_a_share(margin):
  cluster = clusters.make_cluster(1)
  with pytest.raises(errors.ClusterError, match='memory_margin'):
    dataclasses.replace(
        cluster, devices=(cluster.devices[0],
                          dataclasses.replace(cluster.devices[1],
                                              memory_margin=margin)))


def test_accelerators_are_the_gpus():
  assert presets.preset('2xP100').accelerators == (1, 2)


def test_accelerators_are_the_cpus_where_there_is_no_gpu():
  assert presets.preset('2xcpu-eth10').accelerators == (0, 1)


def test_the_first_cpu_is_the_host():
  cluster = clusters.make_cluster(1)
  turned = dataclasses.replace(cluster, devices=cluster.devices[::-1])
  assert turned.host == 1


def test_link_arrays():
  cluster = clusters.make_cluster(1, latency_s=2.0, channels=lambda a, b:
                                  (f'{a}{b}',))
  latency, bandwidth, channels = cluster.link_arrays
  assert latency.tolist() == [[0, 2], [2, 0]]
  assert bandwidth.tolist() == [[np.inf, 100], [100, np.inf]]
  assert channels.tolist() == [[[-1], [0]], [[1], [-1]]]


def test_links_with_fewer_channels_repeat_their_last():
  cluster = clusters.make_cluster(
      2, channels=lambda a, b: (('x',) if a == 'CPU:0' else ('y', 'x', 'z')
                                if b == 'CPU:0' else ('a', 'y')))
  channels = cluster.link_arrays[2]
  assert channels.shape == (3, 3, 3) and channels.dtype == np.int32
  assert channels[0, 1].tolist() == [1, 1, 1]
  assert channels[1, 0].tolist() == [2, 1, 3]
  assert channels[1, 2].tolist() == [0, 2, 2]
  assert clusters.make_cluster(0).link_arrays[2].tolist() == [[[-1]]]


@pytest.mark.parametrize(
    'text, expected',
    [('GPU:0', '/device:GPU:0'), ('gpu:1', '/device:GPU:1'),
     ('/gpu:1', '/device:GPU:1'), ('/device:CPU:0', '/device:CPU:0'),
     ('device:cpu:01', '/device:CPU:1'), (_GPU, _GPU),
     (_GPU.replace('device:GPU', 'gpu'), _GPU), ('', None),
     ('/job:ps/task:3/device:GPU:1', '/job:ps/replica:0/task:3/device:GPU:1'),
     ('GPU', None), ('GPU:', None), ('GPU:x', None),
     ('/job:worker/device:GPU:0', None), ('GPU:0 ', None), ('GPU:0\n', None)])
def test_canonical_names(text, expected):
  if expected:
    assert cluster_lib.canonical_device(text) == expected
  else:
    with pytest.raises(errors.ClusterError, match='is not a device name'):
      cluster_lib.canonical_device(text)


def test_devices_are_found_by_any_name():
  cluster = presets.preset('2xP100')
  assert [cluster.device_index(n) for n in ('CPU:0', '/gpu:1', _GPU)
         ] == [0, 2, 1]
  with pytest.raises(errors.ClusterError,
                     match='not in cluster "2xP100". It has: CPU:0, GPU:0'):
    cluster.device_index('GPU:2')
  for name in ('worker/0/GPU:0', '/job:worker/replica:0/task:0/device:GPU:0'):
    with pytest.raises(
        errors.ClusterError, match='on a host that is not in cluster "2xP100". '
        'Its hosts are localhost/0'):
      cluster.device_index(name)


def test_devices_of_hosts():
  cluster = presets.preset('2x2xP100-ib')
  assert cluster.device_labels[1] == 'worker/0/GPU:0'
  for index, label in enumerate(cluster.device_labels):
    assert cluster.device_index(label) == index
    assert cluster.device_index(cluster.device_names[index]) == index
  assert cluster.device_index('worker/01/gpu:1') == 5
  assert cluster.device_index('GPU:1') == 2
  with pytest.raises(errors.ClusterError,
                     match='worker/1 has: CPU:0, GPU:0, GPU:1'):
    cluster.device_index('worker/1/GPU:2')
  with pytest.raises(errors.ClusterError, match='hosts are worker/0, worker/1'):
    cluster.device_index('worker/2/GPU:0')
  for name in ('worker/GPU:0', 'worker/1/', 'worker/-1/GPU:0', '/1/GPU:0'):
    with pytest.raises(errors.ClusterError, match='not a device name'):
      cluster.device_index(name)


def test_types_of_names():
  assert cluster_lib.device_type(_GPU) == 'GPU'
  assert cluster_lib.device_type('/gpu:1') == 'GPU'
  assert cluster_lib.device_type('') == ''


def test_devices_of_a_type_without_figures(tmp_path):
  path = tmp_path / 'tpus.json'
  path.write_text(presets.preset('2xP100').to_json().replace('GPU', 'TPU'))
  with pytest.raises(errors.ClusterError) as error:
    cluster_file.read(str(path))
  assert str(error.value).startswith(f'{path}: ')
  assert "devices[1].type (" in str(error.value)
  assert "is 'TPU'; give CPU or GPU" in str(error.value)


@pytest.mark.parametrize('name', [3, None, b'GPU:0'])
def test_what_is_no_text_is_no_device_name(name):
  with pytest.raises(errors.ClusterError, match='is not a device name'):
    cluster_lib.canonical_device(name)
