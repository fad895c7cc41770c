"""Tests of `gdp profile`."""

import os
import pathlib

import pytest

from gdp_grappler.bin import gdp
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.evaluation.profiling import profiler
from helpers import profiles

_GRAPH = str(pathlib.Path(__file__).parents[2] / 'testdata/dense_train_step.pb')
_CORE = min(os.sched_getaffinity(0))


def _run(tmp_path, *arguments, graph=_GRAPH):
  return gdp.run([
      'profile', graph, '--steps=2', f'--cache_dir={tmp_path}',
      f'--output={tmp_path}/p.json', '--quiet', *arguments
  ])


def test_writes_a_profile_and_says_what_it_found(tmp_path, capsys):
  assert _run(tmp_path, f'--cores={_CORE}') == 0
  out, err = capsys.readouterr()
  profile = profile_lib.load(tmp_path / 'p.json')
  assert profile.devices[0].cores == (_CORE,)
  assert 'dense_train_step on /job:localhost' in out and 'empty step' in out
  assert 'Profiling dense_train_step' in err
  assert _run(tmp_path, f'--cores={_CORE}') == 0
  assert 'Reusing the profile' in capsys.readouterr().err


def test_kernels_of_a_gpu_are_no_part_of_the_step(tmp_path, capsys,
                                                  monkeypatch):
  """The line once had a sum that was not the step."""
  profile = profiles.make_profile(2, devices=[('/device:GPU:0', 'GPU')])
  monkeypatch.setattr(profiler, 'profile_devices', lambda *_, **__: profile)
  assert _run(tmp_path) == 0
  out = capsys.readouterr().out
  assert '2 ops, 3 ms of kernels, step 3.012 ms' in out
  assert 'visits' not in out


@pytest.mark.parametrize(
    'arguments,message',
    [(['--cluster=2xP100'], 'Cannot profile on "2xP100"'),
     (['--cluster=grpc://localhost:1'], 'grpc://localhost:1 cannot be reached'),
     (['--cluster=grpc://localhost:1', '--cores=0'], 'Leave out --cores'),
     (['--cores=0', '--local_workers=2'], '--local_workers divides the cores'),
     (['--cores=100000'], 'names core 100000, which'),
     (['--output=/no/such/folder/p.json'], 'its folder does not exist')])
def test_bad_arguments_get_one_line(tmp_path, capsys, monkeypatch, arguments,
                                    message):
  monkeypatch.setattr(remote_devices.remote_cluster, '__defaults__', (1.,))
  assert _run(tmp_path, *arguments) == 2
  error = capsys.readouterr().err
  assert message in error and error.count('\n') == 1


@pytest.mark.parametrize('cores', ['a', '0,', '-1', ''])
def test_cores_that_are_no_numbers(tmp_path, capsys, cores):
  with pytest.raises(SystemExit):
    _run(tmp_path, f'--cores={cores}')
  assert f'"{cores}" is no list of cores' in capsys.readouterr().err


def test_a_missing_graph(tmp_path, capsys):
  assert _run(tmp_path, graph='none.pb') == 2
  assert 'none.pb' in capsys.readouterr().err
