"""TensorFlow servers on this machine, each on cores of its own.

Two logical CPU devices of one process share its threads, so a placement on both
is not faster. Two servers that are pinned to different cores are two real
devices with a network between them.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import re
import shutil
import socket
import tempfile
from typing import Any, Sequence

from absl import logging

from gdp_grappler import errors
from gdp_grappler import native
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import remote_devices
from gdp_grappler.evaluation.measuring import local_server
from gdp_grappler.processes import worker_process

# The thread pool of ops also serves RecvTensor, which a small pool would block.
INTER_OP_THREADS = 24
# Seconds that the start of all servers may take.
_START_TIMEOUT_S = 120.
# Attempts to start a server, because its port may be in use.
_ATTEMPTS = 3
# Attempts to start a server that is killed.
_ATTEMPTS_KILLED = 20
_HOST = '127.0.0.1'
# Each server takes some hundred megabytes and a share of a core.
_MOST_PER_CORE = 32
_SEPARATOR = re.compile('[ :]')  # Of the paths in LD_PRELOAD.


class LocalWorkers:
  """N servers, one task each; they end with a `with` block, or at exit.

  Attributes:
    cores: [N], cores of each server.
    device_names: [N], full names of the servers' CPU devices.
    target: Address to which a session connects.
  """

  def __init__(self, count: int,
               cores: Sequence[Sequence[int]] | None = None) -> None:
    """Starts the servers and waits until they are connected to each other.

    Args:
      count: N.
      cores: [N], cores of each server; None divides the cores of this process
        evenly.

    Raises:
      MeasurementError: the servers do not start.
    """
    _check(count)
    if cores is not None and len(cores) != count:
      raise errors.MeasurementError(
          f'{count} local workers cannot be started on {len(cores)} sets of '
          'cores. Give a set for each.')
    self.cores = [list(c) for c in cores or divide_cores(count)]
    self.device_names = device_names(count)
    self._ports: list[socket.socket] = []
    self._servers: list[worker_process.WorkerProcess] = []
    atexit.register(self.close)
    try:
      self.start()
      self.wait()
    except BaseException:
      self.close()
      raise

  def __enter__(self) -> LocalWorkers:
    return self

  def __exit__(self, *unused_error: Any) -> None:
    self.close()

  @property
  def target(self) -> str:
    """Address to which sessions connect."""
    return f'grpc://{self.addresses[0]}'

  @property
  def addresses(self) -> list[str]:
    """[N], host:port of each server."""
    return [f'{_HOST}:{port.getsockname()[1]}' for port in self._ports]

  @property
  def servers(self) -> tuple[worker_process.WorkerProcess, ...]:
    """The processes of the servers, in the order of tasks."""
    return tuple(self._servers)

  def close(self) -> None:
    """Ends the servers."""
    atexit.unregister(self.close)
    self._drop_servers()
    self._drop_ports()

  def start(self) -> None:
    """Replaces the servers, if any, by new ones, without waiting for them."""
    self._drop_servers()
    if not self._ports:
      self._ports = [_held_port() for _ in self.cores]
    for task in range(len(self.cores)):
      self._servers.append(self._start(task))

  def wait(self) -> None:
    """Waits until all servers are ready; starts all again if one fails.

    Raises:
      MeasurementError: servers failed too often.
    """
    failures = kills = 0
    while True:
      try:
        self._servers[0].receive(_START_TIMEOUT_S, self._servers[1:])
        return
      except worker_process.Died as error:
        kills += error.killed
        failures += not error.killed
        if failures == _ATTEMPTS or kills == _ATTEMPTS_KILLED:
          self.close()
          raise errors.MeasurementError(
              f'{len(self.cores)} local workers could not start: {error}. Use '
              'fewer, or simulated steps, if this persists.') from error
      # Another program may have taken a port, so reserve new ones.
      self._drop_servers()
      self._drop_ports()
      self.start()

  def _start(self, task: int) -> worker_process.WorkerProcess:
    request = dict(addresses=self.addresses, task=task, cores=self.cores[task],
                   inter_op_threads=INTER_OP_THREADS)
    return worker_process.WorkerProcess(f'{local_server.__name__}:main',
                                        [request], _environment(), keras=False)

  def _drop_servers(self) -> None:
    servers, self._servers = self._servers, []
    for server in servers:
      server.kill()
    for server in servers:
      server.close()

  def _drop_ports(self) -> None:
    ports, self._ports = self._ports, []
    for port in ports:
      port.close()


def device_names(count: int) -> tuple[str, ...]:
  """[N], full names of the devices of N workers."""
  return tuple(f'/job:{local_server.JOB}/replica:0/task:{task}/device:CPU:0'
               for task in range(count))


def cluster(count: int) -> cluster_lib.Cluster:
  """The cluster of N workers on this machine, with assumed speeds.

  The function starts no servers. If workers share a core, their speeds are
  divided by the number of sharers, and a note says so.

  Raises:
    MeasurementError: there are no workers, or far too many.
  """
  _check(count)
  total = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES')
  cores = len(os.sched_getaffinity(0))
  result = remote_devices.of_devices(
      f'{count} local worker{"s" * (count > 1)}',
      [(name, total // count) for name in device_names(count)],
      max(1, cores // count))
  return result if count <= cores else _sharing(result, cores)


def _check(count: int) -> None:
  """Raises an error for a number that is probably a mistake."""
  most = _MOST_PER_CORE * len(os.sched_getaffinity(0))
  if not 1 <= count <= most:
    raise errors.MeasurementError(
        f'{count} local workers cannot be used. Give from 1 to {most}, '
        f'{_MOST_PER_CORE} for each core of this machine.')


def _sharing(alone: cluster_lib.Cluster, cores: int) -> cluster_lib.Cluster:
  """The cluster with slower workers, because `divide_cores` lets them share."""
  count = alone.num_devices
  sharers = [len(range(task % cores, count, cores)) for task in range(count)]
  note = (f'{count} workers share {cores} core{"s" * (cores > 1)}, up to '
          f'{max(sharers)} to a core: the speed of each is divided by the '
          'number of workers on its core.')
  return dataclasses.replace(
      alone, notes=(*alone.notes, note), devices=tuple(
          _slower(device, times)
          for device, times in zip(alone.devices, sharers)))


def _slower(device: cluster_lib.Device, times: int) -> cluster_lib.Device:
  assert device.copy_bytes_per_s is not None  # CPUs have no copy engines.
  return dataclasses.replace(
      device, peak_flops=device.peak_flops / times,
      bandwidth_bytes_per_s=device.bandwidth_bytes_per_s / times,
      launch_s=device.launch_s * times, copy_s=device.copy_s * times,
      copy_bytes_per_s=device.copy_bytes_per_s / times)


def divide_cores(count: int,
                 cores: Sequence[int] | None = None) -> list[list[int]]:
  """[count], a share of the cores for each worker.

  Args:
    count: Number of shares.
    cores: Cores to divide; None means those that this process may use.
  """
  cores = sorted(os.sched_getaffinity(0) if cores is None else cores)
  if count > len(cores):
    logging.log_first_n(
        logging.WARNING, '%d local workers share %d cores; their times say '
        'little about workers with cores of their own.', 1, count, len(cores))
    return [[cores[i % len(cores)]] for i in range(count)]
  each, more = divmod(len(cores), count)
  starts = [i * each + min(i, more) for i in range(count + 1)]
  return [cores[a:b] for a, b in zip(starts, starts[1:])]


def _environment() -> dict[str, str]:
  """Environment variables of servers that this process does not have."""
  preloaded = [_loopback_path(), os.environ.get('LD_PRELOAD', '')]
  return {
      # Workers are CPUs. A server that sees a GPU takes all of its memory.
      'CUDA_VISIBLE_DEVICES': '',
      'HIP_VISIBLE_DEVICES': '',
      # The servers listen on ports that this process holds.
      'TF_GRPC_REUSE_PORT': '1',
      'LD_PRELOAD': ':'.join(filter(None, preloaded))
  }


def _loopback_path() -> str:
  """Path of the library without the characters that separate paths."""
  path = str(native.LOOPBACK_PATH)
  if _SEPARATOR.search(path):
    path = _link(path)
  if _SEPARATOR.search(path):
    raise errors.MeasurementError(
        f'Local workers preload {path}, but LD_PRELOAD takes no path with a '
        'space or a colon. Set TMPDIR to a folder without these characters.')
  return path


@functools.cache
def _link(path: str) -> str:
  """A link to the path, in a temporary folder that is removed at exit."""
  try:
    folder = tempfile.mkdtemp(prefix='gdp_')
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    link = os.path.join(folder, 'loopback.so')
    os.symlink(path, link)
  except OSError as error:
    raise errors.MeasurementError(
        f'Local workers need a link to {path} in the temporary folder: {error}.'
    ) from error
  return link


def _held_port() -> socket.socket:
  """A port that the kernel reserves while the socket is open.

  The socket does not listen, so connections go to the server that listens.
  """
  result = socket.socket()
  result.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
  result.bind((_HOST, 0))
  return result
