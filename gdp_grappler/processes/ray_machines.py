"""Jobs on the machines of a Ray cluster, as the command sees them.

Ray chooses the host of a job, runs the job again on another host if a host or a
process of Ray is lost, and uses new hosts. `ray_worker` does the work of a job.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import pickle
import secrets
import signal
import tempfile
from typing import Any, Iterator, Sequence
import uuid

from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import progress
from gdp_grappler import scratch
from gdp_grappler import spelling
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import ray_entry
from gdp_grappler.processes import ray_worker

LOCAL = 'local'
# Number of jobs in Ray's queue: enough that Ray asks for more hosts, few enough
# to be cancelled at once.
_AHEAD = 256
_TICK_S = 1.  # Seconds until an interruption is noticed.
# Longest path of the folder for temporary files. Ray adds up to 82 bytes.
_LONGEST_FOLDER = 24
# Retries of a job after losses of hosts.
_RETRIES = 20
# Bytes of Ray's store on this machine. The default is a third of the memory.
_STORE_BYTES = 512 << 20
# Environment of a cluster on this machine. A token that is in no file keeps
# other users out. The first variable makes Ray listen on the loopback only.
# With Ray's own niceness, workers would get no time on a busy machine.
_LOCAL_VARIABLES = {
    'RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER': '0', 'RAY_AUTH_MODE': 'token',
    'RAY_USAGE_STATS_ENABLED': '0', 'RAY_worker_niceness': '0'
}
_TOKEN = 'RAY_AUTH_TOKEN'


def check(address: str) -> None:
  """Checks the address of a cluster before a connection is made.

  Raises:
    GdpError: the address names no cluster, or Ray is not installed.
  """
  if not address:
    raise errors.GdpError(f'{spelling.argument("ray")} names no cluster. '
                          f'Give auto, HOST:PORT or {LOCAL}.')
  if '://' in address:
    raise errors.GdpError(
        f'{spelling.argument("ray", address)} is an address of Ray Client, '
        'which is not used. Give the command on a machine of the cluster, with '
        f'{spelling.argument("ray", "auto")}.')
  extras.require(spelling.argument('ray'), 'ray')


class RayMachines(jobs_lib.Machines):
  """A Ray cluster: a context manager that connects and disconnects."""

  def __init__(self, address: str, workers: int | None = None) -> None:
    """Connects to nothing yet.

    Args:
      address: 'auto' for the cluster that this machine is part of, the address
        of its head as HOST:PORT, or `LOCAL` to start one on this machine.
      workers: Jobs at the same time on a local cluster. None: one per core.
    """
    self._address, self._workers = address, workers
    self._folder: scratch.Folder | None = None
    self._variables = contextlib.ExitStack()

  def __enter__(self) -> RayMachines:
    """Connects to the cluster.

    Raises:
      GdpError: Ray is not installed, or there is no such cluster.
    """
    check(self._address)
    progress.doing('starting Ray on this machine' if self._address ==
                   LOCAL else f'connecting to Ray at {self._address}')
    ended_by = signal.getsignal(signal.SIGTERM)
    try:
      self._connect()
    except errors.GdpError:
      self.__exit__()
      raise
    # Ray raises a bare `Exception` if its processes take too long to start.
    except Exception as error:
      self.__exit__()
      raise errors.GdpError(self._complaint(error)) from error
    except BaseException:
      self.__exit__()
      raise
    finally:
      # Ray installs a handler of its own.
      signal.signal(signal.SIGTERM, ended_by)
    progress.doing('running jobs on Ray')
    return self

  def __exit__(self, *unused_error: object) -> None:
    import ray
    ray.shutdown()
    self._variables.close()
    if self._folder:
      self._folder.cleanup()
      self._folder = None

  @property
  def width(self) -> int:
    """Number of jobs at the same time."""
    import ray
    return max(1, int(ray.cluster_resources().get('CPU', 1)))

  def team(self, function: str, setup: Any,
           whole_host: bool = False) -> RayTeam[Any]:
    """See `jobs.Machines`."""
    return RayTeam(function, setup,
                   _largest_host() if whole_host else {'num_cpus': 1})

  def _complaint(self, error: Exception) -> str:
    """Returns an error text that there is no cluster, with advice."""
    # Ray's advice is about flags of Ray's own program.
    said = errors.one_line(error).partition(' Please ')[0].rstrip('. ')
    if self._address == LOCAL:
      return (f'Ray does not start on this machine: {said}. Try again when it '
              f'has less to do, or leave {spelling.argument("ray")} out.')
    return (f'No Ray cluster at {self._address}: {said}. Start one with "ray '
            f'start --head", or give {spelling.argument("ray", LOCAL)}.')

  def _connect(self) -> None:
    quiet = dict(log_to_driver=False, logging_level=logging.ERROR)
    if self._address != LOCAL:
      import ray
      ray.init(self._address, **quiet)
      return
    # Ray reads these variables when it is imported, and so do its processes.
    for name, value in (*_LOCAL_VARIABLES.items(), (_TOKEN, _token())):
      self._variables.enter_context(_set(name, value))
    import ray

    # Only this user can read the folder. Ray lets all users read its contents.
    self._folder = scratch.Folder('gdp_ray', _parent())
    # Files of workers that are killed are in this folder, too.
    with _set('TMPDIR', self._folder.name):
      ray.init(LOCAL, num_cpus=self._workers or len(os.sched_getaffinity(0)),
               include_dashboard=False, object_store_memory=_STORE_BYTES,
               _temp_dir=os.path.join(self._folder.name, 'ray'), **quiet)


class RayTeam(jobs_lib.Team[jobs_lib.JobT]):
  """Jobs with a common setup, which is in Ray's store."""

  def __init__(self, function: str, setup: Any, resources: dict[str,
                                                                float]) -> None:
    """Puts the setup into Ray's store.

    Args:
      function: See `jobs.Machines.team`.
      setup: The setup of all workers.
      resources: Resources that a job reserves, as options of Ray.
    """
    import ray
    self._function, self._name = function, uuid.uuid4().hex
    # In a list, so that a worker fetches it only if it needs it.
    self._setup = [ray.put(setup)]
    # `ray_entry.run` never fails by itself, so Ray retries only after losses.
    # The number of retries is limited, because a job that needs more memory
    # than any host has would otherwise be retried for ever.
    ray.cloudpickle.register_pickle_by_value(ray_entry)
    self._run = ray.remote(ray_entry.run).options(max_retries=_RETRIES,
                                                  **resources)
    self._pending: dict[Any, tuple[int, jobs_lib.JobT]] = {}

  def close(self) -> None:
    """Cancels the jobs that have not ended."""
    import ray
    for reference in self._pending:
      ray.cancel(reference, force=True)
    self._pending = {}

  def run(
      self,
      jobs: Sequence[jobs_lib.JobT]) -> Iterator[jobs_lib.Ended[jobs_lib.JobT]]:
    """See `jobs.Team`."""
    import ray
    waiting = list(enumerate(jobs))[::-1]
    code, seen = ray_worker.installed(self._function), ray_worker.variables()
    strange = ray_entry.folders()
    try:
      while waiting or self._pending:
        while waiting and len(self._pending) < _AHEAD:
          index, job = waiting.pop()
          packed = pickle.dumps((self._name, self._function, job, code, seen))
          reference = self._run.remote(strange, packed, self._setup)
          self._pending[reference] = index, job
        ready, _ = ray.wait(list(self._pending), timeout=_TICK_S)
        for reference in ready:
          index, job = self._pending.pop(reference)
          yield jobs_lib.Ended(index, job, *_outcome(reference))
    finally:
      # If the caller stops early, jobs still run. Their results must not reach
      # the next run.
      self.close()


def _outcome(reference: Any) -> tuple[Any, str, float]:
  """Returns result, problem and seconds of a job that has ended."""
  import ray
  try:
    result, problem, seconds = ray.get(reference)
    return result, problem, seconds
  except ray.exceptions.RayError as error:
    # For example, the host lacks this package, so Ray could not begin.
    return None, f'Ray could not run it: {errors.one_line(error)}', 0.


def _largest_host() -> dict[str, float]:
  """Returns all processors and GPUs of a host, so that no other job runs there.

  The host is the largest one. Smaller hosts run no such job.

  Raises:
    GdpError: the cluster has no host.
  """
  import ray
  hosts = [node['Resources'] for node in ray.nodes() if node['Alive']]
  # The head of a cluster may offer its GPUs, but no processor.
  gpus, cpus = max(
      ((host.get('GPU', 0.), host['CPU']) for host in hosts if host.get('CPU')),
      default=(0., 0.))
  if not cpus:
    raise errors.GdpError('No host of the Ray cluster has a processor to '
                          'offer. Start one with "ray start --address=...".')
  return {'num_cpus': cpus, 'num_gpus': gpus}


@functools.cache
def _token() -> str:
  """Returns the token of this process. Ray keeps the first token it reads."""
  return secrets.token_hex(32)


def _parent() -> str:
  """Returns a folder for Ray's files, with a name short enough for sockets.

  Names of sockets have 107 bytes at most.
  """
  usual = tempfile.gettempdir()
  return usual if len(usual) <= _LONGEST_FOLDER else '/tmp'


@contextlib.contextmanager
def _set(name: str, value: str) -> Iterator[None]:
  """Sets an environment variable for children in the context."""
  before = os.environ.get(name)
  os.environ[name] = value
  try:
    yield
  finally:
    del os.environ[name]
    if before is not None:
      os.environ[name] = before
