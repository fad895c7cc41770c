"""Programs that are placed over the devices of two hosts.

Each host is a TensorFlow server in a process of its own.
"""

import contextlib
import dataclasses
import re
import socket
import subprocess
import sys
import tempfile

import pytest

from gdp_grappler import native
from helpers import fresh

pytestmark = pytest.mark.e2e

_OWN = '/job:localhost/replica:0/task:0/device:CPU:0'
_HOSTS = [f'/job:worker/replica:0/task:{task}/device:CPU:0' for task in (0, 1)]
_LOOPBACK = {'LD_PRELOAD': str(native.LOOPBACK_PATH)}
_FIT = r'fit of "\w+"'
_LABELS = 'localhost/0/CPU:0', 'worker/0/CPU:0', 'worker/1/CPU:0'


@contextlib.contextmanager
def _servers(log, **variables):
  """Starts two servers, and yields their addresses and processes.

  Args:
    log: Binary file for the standard error of both.
    **variables: Environment variables of both.
  """
  held = []
  for _ in range(2):
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    port.bind(('127.0.0.1', 0))
    held.append(port)
  addresses = [f'127.0.0.1:{port.getsockname()[1]}' for port in held]
  with contextlib.ExitStack() as stack:
    running = []
    for port in held:
      stack.callback(port.close)
    for task in range(2):
      running.append(
          subprocess.Popen([
              sys.executable,
              str(fresh.PROGRAMS / 'host_server.py'), ','.join(addresses),
              str(task)
          ], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                           env=fresh.environment(TF_GRPC_REUSE_PORT='1',
                                                 **_LOOPBACK, **variables)))
      stack.enter_context(running[-1])
      stack.callback(running[-1].kill)
    for server in running:
      assert server.stdout.readline() == b'serving\n'
    yield addresses, running


def _run(mode, keras='keras', servers=None, **variables):
  """Runs the program; its standard error includes that of both servers.

  With Keras 3 the program preloads the library of the servers, so that `warm`
  can fork all of them from one process.

  Args:
    mode: Mode of the program.
    keras: 'keras' or 'tf_keras'.
    servers: Environment variables of the servers alone.
    **variables: Environment variables of the program and the servers.
  """
  more = {'TF_USE_LEGACY_KERAS': '1'} if keras == 'tf_keras' else _LOOPBACK
  with tempfile.TemporaryFile() as log:
    with _servers(log, **variables, **servers or {}) as (addresses, running):
      finished = fresh.run('hosts.py', mode, *addresses, str(running[1].pid),
                           timeout_s=120, **more, **variables)
    log.seek(0)
    said = log.read().decode()
  return dataclasses.replace(finished, stderr=finished.stderr + said)


def _placed(finished, what):
  """Returns the number of ops on each device in the notice of a graph."""
  notice, = [n for n in finished.notices if re.match(rf'\[gdp\] {what}: ', n)]
  assert ' placed by round_robin: ' in notice
  return {
      label: int(notice.split(f'{label} ')[1].split(',')[0].split(';')[0])
      for label in _LABELS if f'{label} ' in notice
  }


def _check_fit(finished, devices):
  (losses,
   _), (placed,
        used) = (finished.results['fit'][key] for key in ('stock', 'placed'))
  assert placed == losses and losses[-1] < losses[0]
  assert used == devices


def test_connected_to_a_cluster():
  finished = _run('cluster')
  _check_fit(finished, [_OWN, *_HOSTS])
  function = finished.results['function']
  assert function['placed'] == function['stock']
  for what in (_FIT, 'function'):
    counts = _placed(finished, what)
    assert set(counts) == set(_LABELS) and min(counts.values()) > 10


def test_servers_that_run_what_they_are_sent_need_no_plugin():
  """The docs once said that each machine needs the plugin."""
  finished = _run('cluster', servers={'GDP_DISABLE': '1'})
  _check_fit(finished, [_OWN, *_HOSTS])
  assert set(_placed(finished, 'function')) == set(_LABELS)


def test_connected_to_hosts_with_keras_2():
  finished = _run('host', 'tf_keras')
  _check_fit(finished, [_OWN, *_HOSTS])
  assert min(_placed(finished, _FIT).values()) > 10


def test_a_resolver_makes_the_first_host_the_default():
  """The first host runs functions as a whole and places them."""
  finished = _run('master')
  _check_fit(finished, _HOSTS[:1])
  function = finished.results['function']
  assert function['placed'] == function['stock']
  for what in ('step of a Keras model', 'function'):
    counts = _placed(finished, what)
    assert set(counts) == set(_LABELS) and min(counts.values()) > 10
  assert any('that server runs it as a whole' in n for n in finished.notices)


def test_a_fit_within_the_scope_of_a_host_with_keras_2():
  """The server still runs the first call after the call has returned."""
  finished = _run('scope', 'tf_keras')
  _check_fit(finished, _HOSTS[1:])
  assert any('that server runs it as a whole' in n for n in finished.notices)


def test_sessions_are_placed_by_their_server():
  """Ops that read a buffer after an update once read a copy from before it."""
  finished = _run('session')
  (losses,
   alone), (placed,
            used) = (finished.results[key] for key in ('stock', 'placed'))
  assert placed == losses and losses[-1] < losses[0]
  assert (alone, used) == (_HOSTS[:1], _HOSTS)
  late = finished.results['late_reads']
  assert late['placed'] == late['stock']
  assert any('that server places their graphs' in n for n in finished.notices)


def test_a_host_that_dies(tmp_path):
  """TensorFlow raises the error. The next start uses the remaining host."""
  cache = str(tmp_path)
  died = _run('killed', GDP_CACHE_DIR=cache).results
  assert died['error'] == 'UnavailableError' and died['cause'] == 'None'
  assert died['module'] == 'tensorflow.python.framework.errors_impl'
  left = _run('left', GDP_CACHE_DIR=cache)
  assert left.results['placed'][0] == left.results['stock'][0]
  assert left.results['placed'][1] == [_OWN, _HOSTS[0]]
  assert set(_placed(left, _FIT)) == set(_LABELS[:2])
