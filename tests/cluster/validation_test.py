"""Clusters that make no sense, most of them read from files."""

import dataclasses
import json

import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import presets
from helpers import clusters

_CPU = '/job:localhost/replica:0/task:0/device:CPU:0'
_GPU = '/job:localhost/replica:0/task:0/device:GPU:0'


def _fields(path, value):
  fields = json.loads(clusters.make_cluster(2).to_json())
  *keys, last = path
  inner = fields
  for key in keys:
    inner = inner[key]
  if value is None:
    del inner[last]
  else:
    inner[last] = value
  return fields


@pytest.mark.parametrize('path, value, message', [
    (['devices'], None, 'devices is missing'),
    (['devices'], 'all', "devices is 'all'; give a list"),
    (['devices', 1], 3, r'devices[1] is 3; give a JSON object'),
    (['devices'], [], 'no CPU device'),
    (['devices', 0, 'type'], 'GPU', 'no CPU device'),
    (['devices', 1, 'type'
     ], 'CPU', f"devices[1].type ({_GPU}) is 'CPU', but the name says 'GPU'"),
    (['devices', 1, 'type'
     ], 'abc', f"devices[1].type ({_GPU}) is 'abc'; give CPU or GPU"),
    (['devices', 1, 'type'], 'gpu', "is 'gpu'; give CPU or GPU"),
    (['devices', 1, 'name'], 'card:0', "but the name says 'CARD'"),
    (['devices', 1, 'name'], _CPU,
     'devices[1].name: device "' + _CPU + '" is listed twice, at devices[0]'),
    (['devices', 1, 'memory_bytes'
     ], None, 'devices[1].memory_bytes is missing'),
    (['devices', 1, 'memory_bytes'
     ], 0, f'devices[1].memory_bytes ({_GPU}) is 0; give a positive number'),
    (['devices', 1, 'memory_bytes'], True, 'is True'),
    (['devices', 1, 'memory_bytes'
     ], 1.5, f'devices[1].memory_bytes ({_GPU}) is 1.5; give whole bytes'),
    (['devices', 1, 'efficiency'
     ], 1.5, f'devices[1].efficiency ({_GPU}) is 1.5; give the share'),
    (['devices', 1, 'memory_bytes'], 1e30, 'is 1e+30'),
    (['devices', 1, 'type'], 5, 'devices[1].type is 5; give a text'),
    (['devices', 1, 'compute'], [1], 'devices[1].compute is [1]'),
    (['devices', 1, 'peak_flops'], 'fast', "is 'fast'"),
    (['devices', 1, 'peak_flops'], float('nan'), 'is nan'),
    (['devices', 1, 'efficiency'], -1, 'efficiency'),
    (['devices', 1, 'launch_s'], -1, 'is -1; give 0 or a positive number'),
    (['devices', 1, 'slots'
     ], 0, f'devices[1].slots ({_GPU}) is 0; give a whole'),
    (['devices', 1, 'launch'
     ], 'lazy', "is 'lazy'; give synchronous or asynchronous"),
    (['devices', 1, 'dispatch_s'], -1, 'is -1'),
    (['devices', 1, 'slots'], 1.5, 'is 1.5; give a whole'),
    (['devices', 1, 'slots'], True, 'is True; give a whole'),
    (['devices', 1, 'copy_s'], -1, 'devices[1].copy_s'),
    (['devices', 1, 'copy_bytes_per_s'], 0, 'devices[1].copy_bytes_per_s'),
    (['devices', 1, 'launchs'], 1, 'devices[1].launchs is an unknown field; '),
    (['devices', 1, 'launchs'], 1, 'Did you mean "launch_s"?'),
    (['colour'], 'red', 'colour is an unknown field'),
    (['step_s'], -1, 'step_s is -1'),
    (['notes'], [3], 'notes[0] is 3'),
    (['links', 3, 'bandwidth_bytes_per_s'
     ], -5, 'links[3].bandwidth_bytes_per_s ('),
    (['links', 3, 'bandwidth_bytes_per_s'
     ], -5, 'is -5; give a positive number from 1e-18 to 1e+18.'),
    (['devices', 1, 'peak_flops'], 1e-300, 'is 1e-300; give a positive number'),
    (['devices', 1, 'efficiency'], 5e-324, 'is 5e-324; give a positive number'),
    (['links', 3, 'bandwidth_bytes_per_s'], 9e-19, 'is 9e-19'),
    (['links', 0, 'latency_s'], float('inf'), 'links[0].latency_s'),
    (['links', 0, 'channels'], [], 'has 0 entries; give 1 to 8'),
    (['links', 0, 'channels'], list('abcdefghi'), 'has 9 entries'),
    (['links', 0, 'channels'], [[1], 2], 'links[0].channels'),
    (['links', 0, 'channels'
     ], 'wire', "links[0].channels is 'wire'; give a list"),
    (['links', 0], None, f'the link {_CPU} -> {_GPU} is missing; add it'),
    (['links', 0, 'target'], _GPU[:-1] + '9',
     'links[0].target: ' + _GPU[:-1] + '9 is an unknown device'),
    (['links', 0, 'target'], _CPU, 'from ' + _CPU + ' to itself'),
    (['links', 0, 'target'], _GPU[:-1] + '1', 'is listed twice, at links[0]'),
])
def test_wrong_files_are_explained(path, value, message):
  with pytest.raises(errors.ClusterError) as error:
    cluster_json.from_fields(_fields(path, value), 'cluster.json')
  assert message in str(error.value)
  assert str(error.value).startswith('cluster.json: ')
  assert '\n' not in str(error.value)


@pytest.mark.parametrize('path, value', [(['devices', 1, 'efficiency'], 1),
                                         (['devices', 1, 'peak_flops'], 1e-18),
                                         (['devices', 1, 'memory_bytes'], 1e9),
                                         (['devices', 2, 'memory'], _CPU),
                                         (['step_s'], 0)])
def test_figures_at_the_border_are_right(path, value):
  cluster_json.from_fields(_fields(path, value), 'cluster.json')


@pytest.mark.parametrize('shared, field, value, reason', [
    ('memory', 'memory_bytes', 1 << 30,
     f'{1 << 30}, but devices[1], which shares its memory "g", has {1 << 40}'),
    ('compute', 'launch', 'asynchronous', "'asynchronous', but devices[1]"),
])
def test_what_is_shared_is_the_same_for_both(shared, field, value, reason):
  cluster = clusters.make_cluster(2, **{shared: ['h', 'g', 'g']})
  *others, last = cluster.devices
  last = dataclasses.replace(last, **{field: value})
  with pytest.raises(errors.ClusterError) as error:
    dataclasses.replace(cluster, devices=(*others, last))
  assert f'devices[2].{field} ({last.name}) is {reason}' in str(error.value)


@pytest.mark.parametrize('field,value', [('slots', 2), ('copy_s', 1e-3),
                                         ('copy_bytes_per_s', 1e9)])
def test_an_asynchronous_device_has_one_stream_and_copy_engines(field, value):
  host, device = clusters.make_cluster(1).devices
  device = dataclasses.replace(device, launch=cluster_lib.ASYNCHRONOUS,
                               **{field: value})
  with pytest.raises(errors.ClusterError,
                     match=fr'devices\[1\].{field} .* is {value}; an async'):
    dataclasses.replace(clusters.make_cluster(1), devices=(host, device))


def test_errors_name_the_cluster():
  cluster = clusters.make_cluster(1)
  with pytest.raises(errors.ClusterError, match='Cluster "test": step_s is -1'):
    dataclasses.replace(cluster, step_s=-1)


def _cut(**changes):
  """One card in two, the second part changed."""
  cluster = presets.preset('1xP100:2')
  *others, last = cluster.devices
  return dataclasses.replace(
      cluster, devices=(*others, dataclasses.replace(last, **changes)))


@pytest.mark.parametrize('changes,said', [
    ({'card': 5}, r'devices\[2\].card is 5; give a text'),
    ({'resident_threads': -1}, r'devices\[2\].resident_threads'),
    ({'resident_threads': .5}, 'give a whole number'),
    ({'resident_threads': 7}, 'cut from the same card'),
    ({'peak_flops': 1.}, 'what the whole card has'),
    ({'float16_rate': 3.}, 'what the whole card has'),
    ({'float64_rate': -1.}, r'devices\[2\].float64_rate .* is -1.0; give a'),
    ({'launch': 'synchronous'}, 'has no stream on a card'),
    ({'compute': cluster_lib.local_name('GPU', 0)}, 'a stream of its own'),
])
def test_parts_of_a_card(changes, said):
  _cut()
  with pytest.raises(errors.ClusterError, match=said):
    _cut(**changes)
