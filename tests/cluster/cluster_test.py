import dataclasses
import json

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import presets
from helpers import clusters

_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'
_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'


def test_names_host_and_pools():
  cluster = clusters.make_cluster(
      2, compute=['c', 'g', 'g'], memory=['m', 'x', 'm'])
  assert cluster.device_names[:2] == (_CPU, _GPU)
  assert [d.short_name for d in cluster.devices] == ['CPU:0', 'GPU:0', 'GPU:1']
  assert cluster.host == 0 and cluster.num_devices == 3
  assert cluster.compute_units.tolist() == [0, 1, 1]
  assert cluster.memory_pools.tolist() == [0, 1, 0]
  assert cluster.pool_bytes.tolist() == [1 << 40, 1 << 40]


def test_the_first_cpu_is_the_host():
  cluster = clusters.make_cluster(1)
  turned = dataclasses.replace(cluster, devices=cluster.devices[::-1])
  assert turned.host == 1


def test_link_arrays():
  cluster = clusters.make_cluster(
      1, latency_s=2.0, channels=lambda a, b: (f'{a}{b}',))
  latency, bandwidth, channels = cluster.link_arrays
  assert latency.tolist() == [[0, 2], [2, 0]]
  assert bandwidth.tolist() == [[np.inf, 100], [100, np.inf]]
  assert channels.tolist() == [[[-1, -1], [0, 0]], [[1, 1], [-1, -1]]]


@pytest.mark.parametrize('text, expected', [
    ('GPU:0', '/device:GPU:0'), ('gpu:1', '/device:GPU:1'),
    ('/gpu:1', '/device:GPU:1'), ('/device:CPU:0', '/device:CPU:0'),
    ('device:cpu:01', '/device:CPU:1'), (_GPU, _GPU),
    (_GPU.replace('device:GPU', 'gpu'), _GPU),
    ('', None), ('GPU', None), ('GPU:', None), ('GPU:x', None),
    ('/job:worker/device:GPU:0', None), ('GPU:0 ', None), ('GPU:0\n', None)])
def test_canonical_names(text, expected):
  if expected:
    assert cluster_lib.canonical_device(text) == expected
  else:
    with pytest.raises(errors.ClusterError, match='is not a device name'):
      cluster_lib.canonical_device(text)


def test_devices_are_found_by_any_name():
  cluster = presets.preset('2xP100')
  assert [cluster.device_index(n) for n in ('CPU:0', '/gpu:1', _GPU)] == [
      0, 2, 1]
  for name in ('GPU:2', '/job:worker/replica:0/task:0/device:GPU:0'):
    with pytest.raises(errors.ClusterError,
                       match='not in cluster "2xP100". It has: CPU:0, GPU:0'):
      cluster.device_index(name)


def test_types_of_names():
  assert cluster_lib.device_type(_GPU) == 'GPU'
  assert cluster_lib.device_type('/gpu:1') == 'GPU'
  assert cluster_lib.device_type('') == ''


def test_json_round_trip(tmp_path):
  cluster = presets.preset('4xP100')
  path = tmp_path / 'cluster.json'
  path.write_text(cluster.to_json())
  assert cluster_lib.read_cluster_file(str(path)) == cluster


def _change(fields, path, value):
  *keys, last = path
  for key in keys:
    fields = fields[key]
  if value is None:
    del fields[last]
  else:
    fields[last] = value


@pytest.mark.parametrize('path, value, message', [
    (['devices'], None, 'KeyError'),
    (['devices'], [], 'no CPU device'),
    (['devices', 0, 'type'], 'GPU', 'no CPU device'),
    (['devices', 1, 'name'], _CPU, 'listed twice'),
    (['devices', 1, 'memory_bytes'], 0, 'memory_bytes = 0'),
    (['devices', 1, 'memory_bytes'], True, 'memory_bytes = True'),
    (['devices', 1, 'memory_bytes'], 1e30, 'memory_bytes = 1e'),
    (['devices', 1, 'type'], 5, 'type = 5'),
    (['devices', 1, 'compute'], [1], 'compute = '),
    (['devices', 1, 'peak_flops'], 'fast', "peak_flops = 'fast'"),
    (['devices', 1, 'peak_flops'], float('nan'), 'peak_flops = nan'),
    (['devices', 1, 'efficiency'], -1, 'efficiency = -1'),
    (['devices', 1, 'launch_s'], -1, 'launch_s = -1'),
    (['devices', 1, 'colour'], 'red', 'colour'),
    (['links', 0, 'latency_s'], float('inf'), 'latency_s = inf'),
    (['links', 0, 'channels'], [], '0 channels'),
    (['links', 0, 'channels'], [[1], 2], 'channels = '),
    (['links', 0, 'channels'], ['a', 'b', 'c'], '3 channels'),
    (['links', 0], None, 'is missing'),
    (['links', 0, 'target'], _GPU.replace('GPU:0', 'GPU:9'), 'is missing'),
])
def test_wrong_files_are_explained(tmp_path, path, value, message):
  fields = json.loads(clusters.make_cluster(2).to_json())
  _change(fields, path, value)
  file = tmp_path / 'c.json'
  file.write_text(json.dumps(fields))
  with pytest.raises(errors.ClusterError, match=message) as error:
    cluster_lib.read_cluster_file(str(file))
  assert str(file) in str(error.value)
  assert '\n' not in str(error.value)


def test_a_link_to_nowhere():
  cluster = clusters.make_cluster(1)
  link = dataclasses.replace(cluster.links[0], target='GPU:9')
  with pytest.raises(errors.ClusterError, match='names an unknown device'):
    dataclasses.replace(cluster, links=(*cluster.links, link))


@pytest.mark.parametrize('content', [b'', b'[1]', b'null', b'{', b'\xff\xfe'])
def test_files_that_are_no_clusters(tmp_path, content):
  file = tmp_path / 'c.json'
  file.write_bytes(content)
  with pytest.raises(errors.ClusterError, match='is not a cluster file'):
    cluster_lib.read_cluster_file(str(file))


def test_no_file(tmp_path):
  for path in (tmp_path, tmp_path / 'none.json'):
    with pytest.raises(errors.ClusterError, match='Cannot read'):
      cluster_lib.read_cluster_file(str(path))
