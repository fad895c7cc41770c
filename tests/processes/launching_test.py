"""The environment of children."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from gdp_grappler import environment
from gdp_grappler import spelling
from gdp_grappler.processes import launching
from helpers import fresh
from helpers import warm


@pytest.mark.parametrize('name', [
    'GDP_PLACEMENT', 'GDP_CAPTURE_DIR', 'TF_USE_LEGACY_KERAS', 'TF_XLA_FLAGS',
    'TF_CONFIG'
])
def test_what_steers_us_does_not_steer_children(monkeypatch, name):
  monkeypatch.setenv(name, '1')
  assert name not in launching.environment()


def test_the_plugin_stays_out(monkeypatch):
  monkeypatch.setenv('GDP_DISABLE', '0')
  assert launching.environment()['GDP_DISABLE'] == '1'
  assert launching.environment({'GDP_DISABLE': '0'})['GDP_DISABLE'] == '0'


def test_the_rest_is_inherited(monkeypatch):
  monkeypatch.setenv('GDP_CACHE_DIR', '/c')
  monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '3')
  found = launching.environment()
  assert (found['GDP_CACHE_DIR'], found['CUDA_VISIBLE_DEVICES']) == ('/c', '3')
  assert found['PYTHONPATH'].split(os.pathsep) == [p for p in sys.path if p]


def test_a_path_that_is_no_text_is_left_out(monkeypatch):
  """A `pathlib.Path` in `sys.path` was an error in each child's start."""
  expected = launching.environment()['PYTHONPATH']
  monkeypatch.setattr(sys, 'path', [pathlib.Path('/a'), *sys.path])
  assert launching.environment()['PYTHONPATH'] == expected


@pytest.mark.parametrize('given, found', [
    ({}, 'localhost,127.0.0.1'),
    ({'no_proxy': 'a'}, 'a,localhost,127.0.0.1'),
    ({'no_proxy': 'a', 'no_grpc_proxy': 'b'}, 'b,localhost,127.0.0.1'),
])
def test_local_workers_are_not_behind_a_proxy(monkeypatch, given, found):
  for name in ('no_proxy', 'no_grpc_proxy'):
    monkeypatch.delenv(name, raising=False)
  for name, value in given.items():
    monkeypatch.setenv(name, value)
  assert launching.environment()['no_grpc_proxy'] == found


# A child without Keras also drops the user's choice, so one child shows both.
@pytest.mark.parametrize('keras, chosen, found', [
    (True, {}, 'True False'),
    (True, {'TF_USE_LEGACY_KERAS': '1'}, 'False True'),
    (False, {'TF_USE_LEGACY_KERAS': '1'}, 'False False'),
], ids=['Keras 3', 'Keras 2', 'none'])  # yapf: disable
def test_tensorflow_starts_with_the_users_keras_and_without(
    keras, chosen, found):
  command = launching.command('helpers.child_functions:kinds_of_keras', (),
                              keras)
  done = subprocess.run(command, env=launching.environment(chosen), check=True,
                        capture_output=True, text=True)
  assert done.stdout.strip() == found


_SURROUNDINGS = warm.MARK + '''
import json, os, sys
print(json.dumps({
    'folder': os.getcwd(), 'arguments': sys.argv, 'said': sys.stdin.read(),
    'path': [p for p in sys.path if p], 'cache': os.environ['GDP_CACHE_DIR'],
    'is_of_tests': 'PYTEST_CURRENT_TEST' in os.environ,
    'parent': os.getppid(), 'leads': os.getsid(0) == os.getpid(),
    'is_fork': 'helpers.warm' in sys.modules}))
print('last words', file=sys.stderr)
sys.exit(3)
'''


def _surroundings(folder, new_session):
  """What a process sees, its exit code, and what it says at last."""
  env = fresh.environment(GDP_CACHE_DIR='c', PYTHONPATH=str(folder))
  del env['PYTEST_CURRENT_TEST']
  done = subprocess.run([sys.executable, '-c', _SURROUNDINGS, 'a', '-b'],
                        input='hello', cwd=folder, env=env, text=True,
                        capture_output=True, start_new_session=new_session,
                        check=False)
  return json.loads(done.stdout), done.returncode, done.stderr


@pytest.mark.parametrize('new_session', [False, True])
def test_a_fork_in_tests_is_like_a_process_of_its_own(tmp_path, new_session):
  """See `helpers.warm`."""
  found, *ended = _surroundings(tmp_path, new_session)
  with warm.cold():
    expected, *stock = _surroundings(tmp_path, new_session)
  assert (found.pop('is_fork'), expected.pop('is_fork')) == (True, False)
  assert found == expected
  assert found['parent'] == os.getpid() and found['leads'] == new_session
  assert ended == stock == [3, 'last words\n']


def test_a_fork_in_tests_can_be_killed():
  code = f'{warm.MARK}print("there", flush=True)\nimport time; time.sleep(99)'
  with subprocess.Popen([sys.executable, '-c', code], stdout=subprocess.PIPE,
                        env=fresh.environment(), text=True) as process:
    assert process.stdout.readline() == 'there\n' and process.poll() is None
    process.kill()
  assert process.returncode == -signal.SIGKILL


def test_the_keras_of_children_is_the_users(monkeypatch):
  # The trainer has set the variable for itself.
  monkeypatch.setenv('TF_USE_LEGACY_KERAS', '1')
  for chosen in ('', '1'):
    monkeypatch.setattr(environment, '_USERS_KERAS', chosen)
    found = launching.environment().get('TF_USE_LEGACY_KERAS', '')
    assert found == chosen


def test_functions_by_name():
  assert launching.resolve('os:getpid') is os.getpid


def _spelled_by_a_child():
  command = launching.command('helpers.child_functions:say_argument',
                              ['signature'])
  done = subprocess.run(command, env=launching.environment(), check=True,
                        capture_output=True, text=True)
  return done.stdout.strip()


def test_a_child_spells_arguments_as_its_parent_does():
  """A graph that gdp_bench could not read named arguments of Python."""
  assert _spelled_by_a_child() == 'signature'
  with spelling.as_flags():
    assert _spelled_by_a_child() == '--signature'
  with spelling.as_flags('gdp_bench', ['tasks']):
    assert _spelled_by_a_child() == spelling.argument('signature')
