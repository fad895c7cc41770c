"""Servers of our own: pinned, watched and ended."""

import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.measuring import local_workers
from helpers import fresh
from helpers import processes
from helpers import warm

# Not with Bazel's unit tests.
pytestmark = pytest.mark.e2e
# Of a parent; so they are forks of one like it.
_LIKE_THEIRS = fresh.environment(GDP_DISABLE='1',
                                 LD_PRELOAD=str(native.LOOPBACK_PATH))


@pytest.fixture(name='workers', scope='module')
def _workers():
  with local_workers.LocalWorkers(2) as workers:
    yield workers


def _pids(workers):
  return [server.pid for server in workers.servers]


def test_their_devices_are_found_at_the_target(workers):
  found = remote_devices.remote_cluster(workers.target)
  assert found.device_names == workers.device_names == (
      '/job:worker/replica:0/task:0/device:CPU:0',
      '/job:worker/replica:0/task:1/device:CPU:0')
  assert len(set(found.compute_units)) == 2


def test_each_runs_on_its_cores_only(workers):
  for pid, cores in zip(_pids(workers), workers.cores):
    assert os.sched_getaffinity(pid) == set(cores)
    of_threads = processes.threads_cores(pid)
    assert of_threads  # The first ends with the process.
    assert all(of_one <= set(cores) for of_one in of_threads)


def test_they_are_in_sessions_of_their_own(workers):
  for pid in _pids(workers):
    assert os.getsid(pid) == pid != os.getsid(0)


def test_other_addresses_of_this_machine_do_not_reach_them(workers):
  host, port = workers.target.removeprefix('grpc://').split(':')
  socket.create_connection((host, port), timeout=20).close()
  # Whoever listens on every interface is reached by 127.0.0.2 as well.
  for address in {'127.0.0.2', _outer_address()}:
    with pytest.raises(ConnectionRefusedError):
      socket.create_connection((address, port), timeout=20)


def _outer_address():
  """What other machines call this one; the loopback if there are none."""
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    try:
      probe.connect(('192.0.2.1', 9))  # Sends nothing; of RFC 5737.
    except OSError:
      return '127.0.0.2'
    return probe.getsockname()[0]


def test_one_that_would_listen_elsewhere_does_not_start(monkeypatch):
  real = local_workers._environment
  monkeypatch.setattr(local_workers, '_environment',
                      lambda: {**real(), 'LD_PRELOAD': ''})
  with pytest.raises(errors.MeasurementError, match='without a password'):
    local_workers.LocalWorkers(1)


def test_they_start_from_a_path_with_a_space_and_a_colon(tmp_path, monkeypatch):
  """LD_PRELOAD once took such a path for several ones, so none started."""
  folder = tmp_path / 'a b:c'
  folder.mkdir()
  library = folder / native.LOOPBACK_PATH.name
  library.symlink_to(native.LOOPBACK_PATH)
  monkeypatch.setattr(native, 'LOOPBACK_PATH', library)
  with local_workers.LocalWorkers(1) as workers:
    assert workers.servers[0].alive
  local_workers._link.cache_clear()
  monkeypatch.setattr('tempfile.tempdir', str(folder))
  with pytest.raises(errors.MeasurementError, match='Set TMPDIR to a folder'):
    local_workers.LocalWorkers(1)


def test_a_killed_one_is_noticed_and_replaced(workers):
  target, before = workers.target, _pids(workers)
  os.kill(before[1], signal.SIGKILL)
  processes.wait_until(lambda: not workers.servers[1].alive)
  workers.start()
  workers.wait()
  assert all(s.alive for s in workers.servers) and workers.target == target
  assert not set(_pids(workers)) & set(before)
  assert not processes.runs(before[0])
  assert remote_devices.remote_cluster(target).num_devices == 2


def test_one_that_is_killed_while_it_starts_is_replaced(monkeypatch):
  started, real = [], local_workers.LocalWorkers._start

  def start(self, task):
    started.append(real(self, task))
    if len(started) == 1:
      os.kill(started[0].pid, signal.SIGKILL)
    return started[-1]

  monkeypatch.setattr(local_workers.LocalWorkers, '_start', start)
  with local_workers.LocalWorkers(1) as workers:
    assert workers.servers == (started[1],) and started[1].alive


def test_none_is_left_after_closing():
  with local_workers.LocalWorkers(1) as workers:
    pids = _pids(workers)
    assert all(processes.runs(p) for p in pids)
  assert not any(os.path.exists(f'/proc/{p}') for p in pids)
  assert not workers.servers


def test_a_port_that_somebody_took_is_replaced(monkeypatch):
  with socket.socket() as taken:
    taken.bind(('127.0.0.1', 0))
    taken.listen()
    held, real = [], local_workers._held_port

    def first_taken():
      held.append(real() if held else taken.dup())
      return held[-1]

    monkeypatch.setattr(local_workers, '_held_port', first_taken)
    with local_workers.LocalWorkers(1) as workers:
      assert workers.servers[0].alive and len(held) == 2
      assert not workers.target.endswith(f':{taken.getsockname()[1]}')


def test_a_server_that_dies_at_start_says_why(tmp_path, monkeypatch, capfd):
  (tmp_path / 'tensorflow.py').write_text('raise OSError("no such luck")')
  monkeypatch.syspath_prepend(tmp_path)
  before = processes.children(os.getpid())
  with (warm.cold(), pytest.raises(errors.MeasurementError,
                                   match='no such luck') as raised):
    local_workers.LocalWorkers(2)
  assert '\n' not in str(raised.value)
  assert processes.children(os.getpid()) == before
  assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('kind', [signal.SIGKILL, signal.SIGINT])
def test_they_end_with_their_parent(kind):
  program = warm.MARK + textwrap.dedent('''
      import signal
      from gdp_grappler.evaluation.measuring import local_workers
      # Whoever runs the tests in the background has it ignored.
      signal.signal(signal.SIGINT, signal.default_int_handler)
      with local_workers.LocalWorkers(2) as workers:
        print(*(server.pid for server in workers.servers), flush=True)
        signal.pause()
      ''')
  with subprocess.Popen([sys.executable, '-c', program], text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                        env=_LIKE_THEIRS) as parent:
    pids = [int(word) for word in parent.stdout.readline().split()]
    assert len(pids) == 2 and all(processes.runs(p) for p in pids)
    parent.send_signal(kind)
  assert processes.ended(pids)


def test_they_end_with_a_parent_that_dies_while_they_start():
  program = ('from gdp_grappler.evaluation.measuring import local_workers\n'
             'local_workers.LocalWorkers(2)')
  with subprocess.Popen([sys.executable, '-c', program],
                        stderr=subprocess.DEVNULL,
                        env=fresh.environment()) as parent:
    processes.wait_until(lambda: len(processes.children(parent.pid)) > 1,
                         parent)
    pids = processes.children(parent.pid)
    parent.kill()
  assert processes.ended(pids)


def test_cores_are_divided():
  divide = local_workers.divide_cores
  assert divide(2, [0, 1]) == [[0], [1]]
  assert divide(1, [4, 2]) == [[2, 4]]
  assert divide(3, range(8)) == [[0, 1, 2], [3, 4, 5], [6, 7]]
  assert divide(3, [5, 6]) == [[5], [6], [5]]


@pytest.mark.parametrize('count, cores', [(0, None), (-1, None), (2, [[0]]),
                                          (10**6, None)])
def test_a_number_that_makes_no_sense(count, cores):
  with pytest.raises(errors.MeasurementError, match='local workers cannot'):
    local_workers.LocalWorkers(count, cores)


def test_a_cluster_without_starting_anything():
  before = processes.children(os.getpid())
  cluster = local_workers.cluster(3)
  assert cluster.device_names == local_workers.device_names(3)
  assert cluster.name == '3 local workers'
  assert cluster.notes
  assert processes.children(os.getpid()) == before
  with pytest.raises(errors.MeasurementError, match='Give from 1 to '):
    local_workers.cluster(0)
  with pytest.raises(errors.MeasurementError, match='for each core'):
    local_workers.cluster(10**6)


def test_workers_that_share_cores_are_slower(monkeypatch):
  monkeypatch.setattr('os.sched_getaffinity', lambda pid: {3, 4})
  alone, = {(d.peak_flops, d.bandwidth_bytes_per_s, d.launch_s, d.copy_s,
             d.copy_bytes_per_s) for d in local_workers.cluster(2).devices}
  assert len(local_workers.cluster(2).notes) == 1
  cluster = local_workers.cluster(50)
  assert cluster.device_names == local_workers.device_names(50)
  assert cluster.notes[1] == ('50 workers share 2 cores, up to 25 to a core: '
                              'the speed of each is divided by the number of '
                              'workers on its core.')
  for device in cluster.devices:
    assert (25 * device.peak_flops, 25 * device.bandwidth_bytes_per_s,
            device.launch_s / 25, device.copy_s / 25,
            25 * device.copy_bytes_per_s) == pytest.approx(alone)


def test_the_worker_that_has_a_core_for_itself_keeps_its_speed(monkeypatch):
  monkeypatch.setattr('os.sched_getaffinity', lambda pid: {3, 4})
  speeds = [d.peak_flops for d in local_workers.cluster(3).devices]
  assert [speeds[1] / speed for speed in speeds] == [2, 1, 2]
