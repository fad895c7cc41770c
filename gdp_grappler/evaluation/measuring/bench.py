"""A bench: a process that runs steps, and the servers that it needs."""

from __future__ import annotations

import dataclasses
import time
from typing import Sequence

from gdp_grappler import errors
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measuring_worker
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

_START_TIMEOUT_S = 300.  # Time to import TensorFlow and read the graph.
# Time between the loss of a server's connections and the end of its process.
_LAST_MOMENTS_S = 2.
# Most runs of a placement whose processes are killed in every run. Something
# else on this machine may kill processes several times by chance.
_TRIES = 10
# Most such runs if the memory may have run out. A placement that exceeds the
# memory is killed in every run, so few runs are enough.
_TRIES_WITHOUT_MEMORY = 3
# Attempts to start processes that are killed.
_STARTS = 10


class Bench:
  """Measures placements one after the other; replaces processes that die."""

  def __init__(
      self, setup: measuring_worker.Setup,
      worker_cores: Sequence[Sequence[int]] = (),
      client_cores: Sequence[int] = ()
  ) -> None:
    """Prepares the bench; the first measurement starts the processes.

    Args:
      setup: Graph and devices to measure. With local workers, the bench sets
        the target.
      worker_cores: Cores of each local worker; () for no workers.
      client_cores: Cores of the process that holds the session; () for any.
    """
    self._setup = setup
    self._worker_cores, self._client_cores = worker_cores, client_cores
    self._client: worker_process.WorkerProcess | None = None
    self._workers: local_workers.LocalWorkers | None = None

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
        somebody = not self._setup.target and (oom_kills is not None and
                                               oom_kills == _oom_kills())
        left -= 1 / (_TRIES if somebody else _TRIES_WITHOUT_MEMORY)
        if not error.killed or left < 1e-6:
          return messages.Failure(str(error), lost=error.killed)
      except BaseException:  # Also Ctrl-C: an answer may still be on its way.
        self.close()
        raise

  def close(self) -> None:
    """Ends the processes; a later measurement starts new ones."""
    client, self._client = self._client, None
    workers, self._workers = self._workers, None
    if client is not None:
      client.close()
    if workers is not None:
      workers.close()

  def _servers(self) -> tuple[worker_process.WorkerProcess, ...]:
    return self._workers.servers if self._workers else ()

  def _start_what_is_missing(self) -> None:
    """Starts all processes again if one has ended.

    A session does not survive the end of a server.
    """
    if self._client is not None and all(
        process.alive for process in (self._client, *self._servers())):
      return
    for attempt in range(_STARTS):
      self.close()
      try:
        self._start()
        return
      except worker_process.Died as error:
        if not error.killed or attempt + 1 == _STARTS:
          raise errors.MeasurementError(
              f'Measuring could not start: {error}. Use simulated steps if '
              'this persists.') from error

  def _start(self) -> None:
    # The client and the workers import TensorFlow in parallel.
    self._client = worker_process.WorkerProcess(
        f'{measuring_worker.__name__}:main', [list(self._client_cores)],
        keras=False)
    setup = self._setup
    if self._worker_cores:
      self._workers = local_workers.LocalWorkers(len(self._worker_cores),
                                                 self._worker_cores)
      setup = dataclasses.replace(setup, target=self._workers.target)
    self._client.send(setup)
    answer = self._client.receive(_START_TIMEOUT_S, self._servers())
    if answer is not None:
      raise errors.MeasurementError(answer.message)

  def _ask(
      self, request: measuring_worker.Request
  ) -> measuring_worker.Timing | messages.Failure:
    assert self._client is not None  # `measure` has started it.
    self._client.send(request)
    answer = self._client.receive(self._setup.timeout_s, self._servers())
    if isinstance(answer, messages.Failure) and answer.lost:
      return self._blamed(answer)
    return answer

  def _blamed(self, failure: messages.Failure) -> messages.Failure:
    """The failure, if the placement is its reason.

    Raises:
      Died: a local server ended or does not answer, or the target lost the
        session but answers again.
      MeasurementError: the target does not answer.
    """
    end = time.monotonic() + _LAST_MOMENTS_S
    while self._workers and time.monotonic() < end:
      for server in self._servers():
        if not server.alive:
          raise server.death()
      time.sleep(.01)
    if self._workers and failure.fatal:  # The workers run, but do not answer.
      raise worker_process.Died(failure.message, killed=True)
    if self._workers and failure.hung:
      self.close()  # The servers may still run the step.
    if not self._setup.target:
      return failure
    complaint = failure if failure.fatal else self._complaint()
    if complaint is not None:
      raise errors.MeasurementError(complaint.message)
    if failure.hung:
      return dataclasses.replace(failure, lost=False)
    raise worker_process.Died(failure.message, killed=True)

  def _complaint(self) -> messages.Failure | None:
    """The client's answer to a new check of the target."""
    assert self._client is not None  # `_ask` has used it.
    self._client.send(None)
    return self._client.receive(self._setup.timeout_s)


def _oom_kills() -> int | None:
  """Number of processes that Linux has killed for memory; None if unknown."""
  try:
    with open('/proc/vmstat', encoding='ascii') as file:
      return next((int(line.split()[1])
                   for line in file if line.startswith('oom_kill ')), None)
  except OSError:
    return None
