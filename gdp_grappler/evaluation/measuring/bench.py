"""One place to measure: a process that runs steps, and the servers it needs."""

from __future__ import annotations

import dataclasses
import time
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measuring_worker
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

_START_TIMEOUT_S = 300.  # To import TensorFlow and read the graph.
_LAST_MOMENTS_S = 2.  # From the end of a server's connections to its own.
# How often a placement runs again after its processes were killed. The kernel
# kills a process without memory every time. Other kills, and servers of others
# that disappear, may be repeated by chance.
_TRIES, _TRIES_WITHOUT_MEMORY = 10, 3
_STARTS = 10


class Bench:
  """Measures placements, one at a time; replaces processes that die."""

  def __init__(self, setup: measuring_worker.Setup,
               worker_cores: Sequence[Sequence[int]] = (),
               client_cores: Sequence[int] = (),
               inter_op_threads: int = local_workers.INTER_OP_THREADS) -> None:
    """Prepares; the first measurement starts the processes.

    Args:
      setup: What to measure; its target is set if there are workers.
      worker_cores: For each local worker its cores; empty for none.
      client_cores: Where the process runs that holds the session; empty for
        anywhere.
      inter_op_threads: Of each local worker.
    """
    self._setup = setup
    self._worker_cores, self._client_cores = worker_cores, client_cores
    self._inter_op_threads = inter_op_threads
    self._client: worker_process.WorkerProcess | None = None
    self._workers: local_workers.LocalWorkers | None = None
    self._stopped = False

  def measure(
      self, request: measuring_worker.Request
  ) -> measuring_worker.Timing | messages.Failure:
    """Runs one placement.

    If a process is killed from outside, the placement runs again.

    Raises:
      MeasurementError: the processes do not start, or lack a device.
    """
    left = 1.
    while True:
      oom_kills = _oom_kills()
      try:
        self._start_what_is_missing()
        return self._ask(request)
      except worker_process.Died as error:
        self.close()
        self._check_stopped()
        somebody = not self._setup.target and (oom_kills is not None and
                                               oom_kills == _oom_kills())
        left -= 1 / (_TRIES if somebody else _TRIES_WITHOUT_MEMORY)
        if not error.killed or left < 1e-6:
          return messages.Failure(str(error), lost=error.killed)
      except BaseException:  # Ctrl-C too: question and answer out of step.
        self.close()
        raise

  def stop(self) -> None:
    """Ends what another thread is measuring; that raises MeasurementError."""
    self._stopped = True
    for process in (self._client, *self._servers()):
      if process is not None:
        process.kill()

  def close(self) -> None:
    """Ends the processes; a later measurement starts others."""
    client, self._client = self._client, None
    workers, self._workers = self._workers, None
    if client is not None:
      client.close()
    if workers is not None:
      workers.close()

  def _check_stopped(self) -> None:
    if self._stopped:
      raise errors.MeasurementError('Measuring was stopped.')

  def _servers(self) -> tuple[worker_process.WorkerProcess, ...]:
    return self._workers.servers if self._workers else ()

  def _start_what_is_missing(self) -> None:
    """Sessions do not survive a server, so all processes go together."""
    if self._client is not None and all(
        process.alive for process in (self._client, *self._servers())):
      return
    for attempt in range(_STARTS):
      self.close()
      try:
        self._start()
        self._check_stopped()
        return
      except worker_process.Died as error:
        self._check_stopped()
        if not error.killed or attempt + 1 == _STARTS:
          raise errors.MeasurementError(
              f'Measuring could not start: {error}. Use simulated steps if '
              'this persists.') from error

  def _start(self) -> None:
    # Both import TensorFlow, at the same time.
    self._client = worker_process.WorkerProcess(
        f'{measuring_worker.__name__}:main', [list(self._client_cores)],
        keras=False)
    setup = self._setup
    if self._worker_cores:
      self._workers = local_workers.LocalWorkers(len(self._worker_cores),
                                                 self._worker_cores,
                                                 self._inter_op_threads)
      setup = dataclasses.replace(setup, target=self._workers.target)
    self._client.send(setup)
    answer = self._client.receive(_START_TIMEOUT_S, self._servers())
    if answer is not None:
      raise errors.MeasurementError(answer.message)

  def _ask(
      self, request: measuring_worker.Request
  ) -> measuring_worker.Timing | messages.Failure:
    assert self._client is not None  # As `measure` has made sure.
    self._client.send(request)
    answer = self._client.receive(self._setup.timeout_s, self._servers())
    if isinstance(answer, messages.Failure) and answer.lost:
      return self._blamed(answer)
    return answer

  def _blamed(self, failure: messages.Failure) -> messages.Failure:
    """The failure, if it is the placement's.

    Raises:
      Died: it is a server's of our own, or one of the target's came back.
      MeasurementError: the target is gone.
    """
    end = time.monotonic() + _LAST_MOMENTS_S
    while self._workers and time.monotonic() < end:
      for server in self._servers():
        if not server.alive:
          raise server.death()
      time.sleep(.01)
    if self._workers and failure.fatal:  # They run, but do not answer.
      raise worker_process.Died(failure.message, killed=True)
    if self._workers and failure.hung:
      self.close()  # Nobody knows what the servers are still doing.
    if not self._setup.target:
      return failure
    complaint = failure if failure.fatal else self._complaint()
    if complaint is not None:
      raise errors.MeasurementError(complaint.message)
    if failure.hung:
      return dataclasses.replace(failure, lost=False)
    raise worker_process.Died(failure.message, killed=True)

  def _complaint(self) -> messages.Failure | None:
    """What the client says of the target now."""
    assert self._client is not None  # It has just answered.
    self._client.send(None)
    return self._client.receive(self._setup.timeout_s)


def _oom_kills() -> int | None:
  """How often Linux has ended a process for memory; None if unknown."""
  try:
    with open('/proc/vmstat', encoding='ascii') as file:
      return next((int(line.split()[1])
                   for line in file if line.startswith('oom_kill ')), None)
  except OSError:
    return None
