"""`gdp cluster` from the outside, in this process."""

import json
import socket

import pytest

from gdp_grappler.bin import gdp
from gdp_grappler.cluster import cluster_file
from gdp_grappler.cluster import cluster_json
from gdp_grappler.cluster import presets
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.measuring import local_workers


def test_tables_by_default_and_json_on_request(capsys):
  assert gdp.run(['cluster', '4xV100']) == 0
  assert capsys.readouterr().out.startswith('Cluster 4xV100: 5 devices')
  assert gdp.run(['cluster', '4xV100', '--json']) == 0
  read = cluster_json.from_fields(json.loads(capsys.readouterr().out), 'stdout')
  assert read == presets.preset('4xV100')


def test_local_workers_have_the_cores_they_are_pinned_to(capsys, monkeypatch):
  # As a mere target they would be taken for servers of four cores each.
  monkeypatch.setattr('os.sched_getaffinity', lambda pid: {0, 1})
  assert gdp.run(['cluster', '--local_workers=2', '--json']) == 0
  cluster = cluster_json.from_fields(json.loads(capsys.readouterr().out),
                                     'stdout')
  assert cluster == local_workers.cluster(2)
  assert [device.slots for device in cluster.devices] == [1, 1]


@pytest.mark.parametrize('name', ['c.json', 'c.pbtxt'])
def test_output_is_a_cluster(name, tmp_path, capsys):
  path = str(tmp_path / name)
  assert gdp.run(['cluster', '2x2xP100-ib', f'--output={path}']) == 0
  assert cluster_file.read(path) == presets.preset('2x2xP100-ib')
  assert gdp.run(['cluster', path]) == 0
  assert 'Cluster 2x2xP100-ib: 6 devices' in capsys.readouterr().out


@pytest.mark.parametrize(
    'arguments, message',
    [(['2xp100'], 'Did you mean "2xP100"?'),
     ([], 'Give either a cluster or --local_workers=N'),
     (['local', '--local_workers=2'], 'Give either'),
     (['--target=grpc://a:1', '--local_workers=2', '--measure'], 'Give either'),
     (['--target=a:1'], '"a:1" is not a target. Write grpc://host:port'),
     (['2xP100', '--target=foo', '--measure'], '"foo" is not a target'),
     (['local', '--target=grpc://a:1'], 'add --measure'),
     (['2xP100', '--output=c.yaml'
      ], '.json, or in .pbtxt, .txt or .textproto for'),
     (['2xP100', '--output=/no/such/c.json'], 'its folder does not exist'),
     (['none.json'], 'Cannot read cluster file none.json'),
     (['grpc:nowhere'], 'is not a target'),
     (['2xP100', '--measure'
      ], 'it names GPU:0, GPU:1, but this process has CPU:0. Time it where')])
def test_bad_input_is_one_line(arguments, message, capsys):
  assert gdp.run(['cluster', '--quiet', *arguments]) == 2
  error, = capsys.readouterr().err.splitlines()
  assert message in error


@pytest.mark.parametrize('cluster', [[], ['2xcpu-eth10']])
def test_a_target_is_a_cluster(cluster, monkeypatch, capsys):
  monkeypatch.setattr(remote_devices.remote_cluster, '__defaults__', (1.,))
  with socket.socket() as listener:
    listener.bind(('localhost', 0))  # Does not listen: connections fail.
    target = f'grpc://localhost:{listener.getsockname()[1]}'
    assert gdp.run(['cluster', *cluster, f'--target={target}',
                    '--measure']) == 2
  assert f'{target} cannot be reached within 1 s' in capsys.readouterr().err


def test_measuring_writes_what_it_measured(tmp_path, capsys):
  path = tmp_path / 'here.json'
  assert gdp.run(['cluster', 'local', '--measure', f'--output={path}']) == 0
  assert '(measured)' in capsys.readouterr().out
  fields = json.loads(path.read_text())
  assert fields['step_s'] > 0
  assert any(note.startswith('measured: step_s') for note in fields['notes'])
