"""Tests of gdp_grappler.cluster.plan."""

import errno
import json
import os
import pathlib

import numpy as np
import pytest

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.cluster import plan
from gdp_grappler.cluster import presets
from helpers import clusters
from helpers import graphs


@pytest.fixture
def graph():
  return graphs.make_graph([(0, 1, 8), (1, 2, 8), (0, 3)], name='net')


@pytest.fixture
def cluster():
  return clusters.make_cluster(2)


@pytest.fixture
def path(tmp_path, graph, cluster):
  result = str(tmp_path / 'net.json')
  plan.save(result, graph, placement_lib.Placement([0, 1, 2, 1], cluster))
  return result


def edit(path, **changes):
  """Replaces top-level fields; None removes one."""
  with open(path, encoding='utf-8') as file:
    fields = json.load(file)
  for key, value in changes.items():
    if value is None:
      del fields[key]
    else:
      fields[key] = value
  with open(path, 'w', encoding='utf-8') as file:
    json.dump(fields, file)


def test_what_is_saved_is_loaded(path, graph, cluster):
  loaded = plan.load(path, graph, cluster)
  np.testing.assert_array_equal(loaded.devices, [0, 1, 2, 1])
  assert loaded.cluster is cluster


def test_a_plan_brings_its_own_cluster(path, graph, cluster):
  assert plan.load(path, graph).cluster == cluster


def test_the_map_of_layers_is_kept_until_an_edit(tmp_path, graph, cluster):
  path = str(tmp_path / 'map.json')
  layers = ('encoder', 'GPU:0'), ('z*', 'GPU:1')
  plan.save(path, graph, placement_lib.Placement([0, 1, 2, 1], cluster),
            'a map', layers)
  assert plan.read(path).layers == layers
  edit(path, graph='mine')
  assert plan.read(path).layers == ()
  edit(path, layers={'encoder': 1})
  with pytest.raises(errors.PlanError, match='"layers" is not an object from'):
    plan.read(path)


@pytest.mark.parametrize('count', [0, 10**9, '2', True, None])
def test_a_number_of_parts_that_no_table_has(path, count):
  edit(path, tables={'words/embeddings': count})
  with pytest.raises(errors.PlanError, match='"tables" is not an object from'):
    plan.read(path)


def test_a_preset_is_written_by_name(tmp_path, graph):
  path = str(tmp_path / 'plan.json')
  cluster = presets.preset('2xP100')
  plan.save(path, graph, placement_lib.Placement([0, 0, 1, 2], cluster))
  with open(path, encoding='utf-8') as file:
    assert json.load(file)['cluster'] == '2xP100'
  assert plan.load(path, graph).cluster == cluster


def test_devices_of_several_hosts_are_told_apart(tmp_path, graph):
  cluster = presets.preset('2x2xP100-ib')
  hosts = [i for i, d in enumerate(cluster.devices) if d.type == 'CPU']
  gpus = [i for i, d in enumerate(cluster.devices) if d.type == 'GPU']
  devices = np.resize([hosts[0], gpus[0], hosts[1], gpus[-1]], graph.num_ops)
  path = str(tmp_path / 'plan.json')
  plan.save(path, graph, placement_lib.Placement(devices, cluster))
  loaded = plan.load(path, graph)
  assert loaded.devices.tolist() == devices.tolist()
  assert loaded.cluster == cluster


def test_it_is_readable(path):
  with open(path, encoding='utf-8') as file:
    assert '"op1": "GPU:0"' in file.read()


def test_an_edited_plan_loads(path, graph, cluster):
  devices = {
      'op0': '/gpu:1', 'op1': 'cpu:0', 'op2': 'GPU:1',
      'op3': '/job:localhost/replica:0/task:0/device:GPU:0'
  }
  edit(path, devices=devices)
  np.testing.assert_array_equal(
      plan.load(path, graph, cluster).devices, [2, 0, 2, 1])


def test_saving_again_replaces_the_file_and_leaves_no_other(
    path, graph, cluster, tmp_path):
  plan.save(path, graph, placement_lib.Placement([2, 2, 2, 2], cluster))
  np.testing.assert_array_equal(plan.load(path, graph).devices, [2] * 4)
  assert [p.name for p in tmp_path.iterdir()] == ['net.json']


@pytest.mark.parametrize('text, reason', [
    ('', 'Expecting value'),
    ('{"format": "gdp-pl', 'Unterminated string'),
    ('[]', '"format"'),
    ('{"format": "other"}', '"format"'),
    ('{"format": "gdp-plan", "version": 9}', 'version 9'),
    ('{"format": "gdp-plan", "version": 1}', '"graph" is missing'),
    ('{"a": 1, "a": 2}', '"a" appears twice'),
    (b'\x80\xff\x00', 'not text'),
    ('[' * 100_000, 'nested too deeply'),
])
def test_damaged_files(tmp_path, graph, text, reason):
  path = tmp_path / 'bad.json'
  path.write_bytes(text if isinstance(text, bytes) else text.encode())
  check_error(lambda: plan.load(str(path), graph), reason, str(path))


@pytest.mark.parametrize('changes, reason', [
    ({'devices': None}, '"devices" is missing'),
    ({'fingerprint': 3}, '"fingerprint" is missing'),
    ({'devices': {'op0': 1}}, 'the device of "op0" is 1'),
    ({'cluster': '17xP100'}, 'Unknown cluster'),
    ({'cluster': {'name': 'x'}}, 'its cluster: devices is missing'),
])
def test_damaged_fields(path, graph, changes, reason):
  edit(path, **changes)
  check_error(lambda: plan.load(path, graph), reason, path)


def test_priorities_are_saved_and_loaded(path, graph, cluster):
  priorities = [0.1 + 0.2, 1e-9, -3., 5e20]
  plan.save(path, graph,
            placement_lib.Placement([0, 1, 2, 1], cluster, priorities))
  assert plan.load(path, graph).priorities.tolist() == priorities


def test_a_plan_without_an_order_says_nothing_of_one(path, graph):
  with open(path, encoding='utf-8') as file:
    assert 'priorities' not in file.read()
  assert plan.load(path, graph).priorities is None


@pytest.mark.parametrize(
    'priorities, reason',
    [(None, '"priorities" is not an object'),
     ([1, 2, 3, 4], '"priorities" is not an object'),
     ({'op0': 1, 'op1': 1, 'op2': 1}, '"priorities" lacks "op3"'),
     ({'op0': 1, 'op1': 1, 'op2': 1, 'op3': 1, 'opt': 1
      }, '"priorities" has "opt", which "devices" lacks'),
     ({'op0': 1, 'op1': True, 'op2': 1, 'op3': 1
      }, 'in "priorities", that of "op1" is True'),
     ({'op0': 1, 'op1': 'high', 'op2': 1, 'op3': 1
      }, 'in "priorities", that of "op1" is \'high\''),
     ({'op0': 1, 'op1': float('nan'), 'op2': 1, 'op3': 1}, 'is nan'),
     ({'op0': 1, 'op1': float('inf'), 'op2': 1, 'op3': 1}, 'is inf')])
def test_wrong_priorities(path, graph, priorities, reason):
  with open(path, encoding='utf-8') as file:
    fields = json.load(file)
  with open(path, 'w', encoding='utf-8') as file:
    json.dump({**fields, 'priorities': priorities}, file)
  check_error(lambda: plan.load(path, graph), reason, path)


@pytest.mark.parametrize('priorities',
                         [[1., 2., 3.], [1., 2., 3., float('nan')]])
def test_wrong_priorities_are_not_saved(path, graph, cluster, priorities):
  placement = placement_lib.Placement([0, 1, 2, 1], cluster, priorities)
  check_error(lambda: plan.save(path, graph, placement),
              'not one finite number each')


def test_missing_file(tmp_path, graph):
  path = str(tmp_path / 'none.json')
  check_error(lambda: plan.load(path, graph), 'No such file', path)


def test_what_is_no_file(tmp_path, graph):
  pipe = str(tmp_path / 'pipe')
  os.mkfifo(pipe)
  check_error(lambda: plan.load(pipe, graph), 'no regular file', pipe)


def test_an_edited_plan_is_used_and_told(path, graph, caplog):
  """It may be a bit that flipped: GPU:0 and GPU:1 differ in one."""
  plan.load(path, graph)
  assert not caplog.messages
  text = pathlib.Path(path).read_text()
  pathlib.Path(path).write_text(text.replace('"GPU:0"', '"GPU:1"', 1))
  for _ in range(2):
    plan.load(path, graph)
  message, = caplog.messages
  assert path in message and 'was changed since it was written' in message


def test_a_plan_without_a_digest_is_as_good_as_any(path, graph, caplog):
  fields = json.loads(pathlib.Path(path).read_text())
  del fields['digest']
  pathlib.Path(path).write_text(json.dumps(fields))
  plan.load(path, graph)
  assert not caplog.messages


def test_unknown_device(path, graph, cluster):
  """The error of a plan for GPUs named an op "unknown_41"."""
  edit(path, devices={f'op{i}': 'GPU:7' for i in range(4)})
  check_error(lambda: plan.load(path, graph, cluster), 'cannot place 4 ops',
              'GPU:7', 'CPU:0, GPU:0, GPU:1',
              'Place the graph for this cluster')


@pytest.mark.parametrize('text, meant', [('GPU1', ' Did you mean "GPU:1"?'),
                                         (' GPU:0 ', ' Did you mean "GPU:0"?'),
                                         ('', '')])
def test_a_text_that_is_no_device_name(path, graph, cluster, text, meant):
  """The remedy was the one for a device that another cluster has."""
  edit(path,
       devices={f'op{i}': text or 'GPU:1' for i in range(3)} | {'op3': text})
  with pytest.raises(errors.PlanError) as caught:
    plan.load(path, graph, cluster)
  assert f'"{text}" is not a device name.' in str(caught.value)
  assert str(caught.value).endswith(f'/device:GPU:0".{meant}')


def test_unknown_and_missing_ops(path, graph):
  edit(path,
       devices={'op0': 'GPU:0', 'op1': 'GPU:0', 'opt': 'GPU:0', 'op3': 'GPU:0'})
  check_error(lambda: plan.load(path, graph), '1 unknown op (such as "opt")',
              '1 missing op (such as "op2")')


@pytest.mark.parametrize('edges, name, names, parts', [
    ([(0, 1, 8), (1, 2, 8)], 'other', ['op0', 'a', 'b'],
     ('made for graph "net"', 'not for "other"',
      '3 unknown ops (such as "op1")', '2 missing ops (such as "a")')),
    ([(0, 1, 16), (1, 2, 16), (0, 3)], 'net', None, ('another batch size',)),
    ([(0, 1, 8)], 'net', None,
     ('made for graph "net", but this "net" has another fingerprint: '
      '2 unknown ops',)),
])
def test_plan_for_another_graph(path, edges, name, names, parts):
  other = graphs.make_graph(edges, name=name, names=names)
  check_error(lambda: plan.load(path, other), *parts)


def test_ops_that_differ_in_numbers_of_keras(path):
  """A plan did not fit the same model, made again in the same program."""
  names = ['net/a/x', 'net/a_1/x', 'net/b/x', 'net/b/y']
  graph = graphs.make_graph([(0, 1, 8), (1, 2, 8), (0, 3)], names=names)
  plan.save(
      path, graph,
      placement_lib.Placement([1, 2, 0, 1], presets.preset('2xP100'),
                              [4., 3., 2., 1.]))
  again = graph.replace(names=['n_1/a_7/x', 'n_1/a_12/x', 'n_1/b/x', 'n_1/b/y'])
  check_error(lambda: plan.load(path, again), '4 unknown ops')
  again = graph.replace(
      names=['net_1/a_7/x', 'net_1/a_12/x', 'net_1/b/x', 'net_1/b/y'])
  loaded = plan.load(path, again)
  assert loaded.devices.tolist() == [1, 2, 0, 1]
  assert loaded.priorities.tolist() == [4., 3., 2., 1.]


@pytest.mark.parametrize('field, reason',
                         [('priority', 'Did you mean "priorities"?'),
                          ('comment', 'Remove it; there are format, version,')])
def test_unknown_field(path, graph, field, reason):
  edit(path, **{field: {}})
  check_error(lambda: plan.load(path, graph), f'unknown field "{field}"',
              reason, path)


def test_the_version_of_a_later_plan_comes_before_its_fields(path, graph):
  edit(path, version=2, colour='red')
  check_error(lambda: plan.load(path, graph), 'has version 2')


@pytest.mark.parametrize('layer', ['format', 'devices', 'fingerprint'])
def test_a_layer_may_have_the_name_of_a_field_of_plans(tmp_path, layer):
  """The map of such a layer was taken for a damaged plan."""
  path = tmp_path / 'map.json'
  path.write_text(json.dumps({layer: 'GPU:0'}))
  assert plan.read_layers(str(path)) == {layer: 'GPU:0'}


def test_a_plan_is_no_map_of_layers(path):
  assert plan.read_layers(path) is None
  edit(path, format='other')
  assert plan.read_layers(path) is None


def test_placement_of_another_graph_is_not_saved(path, graph, cluster):
  check_error(
      lambda: plan.save(path, graph, placement_lib.Placement([0], cluster)),
      '1 ops')


def test_full_disk_leaves_the_old_file(path, graph, cluster, tmp_path,
                                       monkeypatch):

  def full(unused_descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  monkeypatch.setattr(os, 'fsync', full)
  with pytest.raises(errors.GdpError) as caught:
    plan.save(path, graph, placement_lib.Placement([2] * 4, cluster))
  assert 'No space left' in str(caught.value)
  assert '\n' not in str(caught.value)
  np.testing.assert_array_equal(plan.load(path, graph).devices, [0, 1, 2, 1])
  assert [p.name for p in tmp_path.iterdir()] == ['net.json']


def test_directory_does_not_exist(tmp_path, graph, cluster):
  with pytest.raises(errors.GdpError, match='No such file'):
    plan.save(str(tmp_path / 'no' / 'plan.json'), graph,
              placement_lib.Placement([0] * 4, cluster))


def check_error(call, *parts):
  """Raises a PlanError of one line with all parts."""
  with pytest.raises(errors.PlanError) as caught:
    call()
  message = str(caught.value)
  assert '\n' not in message
  for part in parts:
    assert part in message
