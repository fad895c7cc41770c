"""Runs jobs in processes of this machine."""

from __future__ import annotations

import os
import selectors
import time
from typing import Any, Iterator, Sequence

from gdp_grappler import scratch
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import worker_process

# Seconds between two looks at the time limits of jobs.
_TICK_S = .5
# Seconds that forked processes get to end.
_LEAVING_S = 5.
_SERVE = f'{job_worker.__name__}:main'


class Here(jobs_lib.Machines):
  """This machine, as `jobs.Machines`.

  Attributes:
    width: See `jobs.Machines`.
  """

  def __init__(self, width: int) -> None:
    """Creates machines that run `width` jobs at the same time."""
    self._width = width

  def __enter__(self) -> Here:
    return self

  def __exit__(self, *unused_error: object) -> None:
    """Does nothing, because teams end their processes."""

  @property
  def width(self) -> int:
    """Number of jobs at the same time."""
    return self._width

  def team(self, function: str, setup: Any,
           whole_host: bool = False) -> LocalTeam[Any]:
    """See `jobs.Machines`."""
    return LocalTeam(function, setup, 1 if whole_host else self._width)


class Worker(worker_process.WorkerProcess):
  """A process that answers jobs, and the folder for its temporary files.

  It answers a job with the result and '', or with None and the reason.
  """

  def __init__(self, function: str, setup: Any) -> None:
    """Starts the process.

    Args:
      function: See `jobs.Machines.team`.
      setup: The setup; see `jobs.Machines.team`.
    """
    # A killed process does not remove its files, so the parent does.
    self._folder = scratch.Folder('gdp_job')
    super().__init__(_SERVE, [function], {'TMPDIR': self._folder.name})
    try:
      self.send(setup)
    except worker_process.Died:
      pass  # `send` of a job reports this.

  def close(self) -> None:
    """Ends the process, and removes its temporary files."""
    super().close()
    # Forked processes may write for a moment.
    deadline = time.monotonic() + _LEAVING_S
    self._folder.cleanup()
    while os.path.exists(self._folder.name) and time.monotonic() < deadline:
      time.sleep(_LEAVING_S / 100)
      self._folder.cleanup()


class LocalTeam(jobs_lib.Team[jobs_lib.JobT]):
  """Processes that run one job at a time each."""

  def __init__(self, function: str, setup: Any, count: int) -> None:
    """Starts no process before there are jobs.

    Args:
      function: See `jobs.Machines.team`.
      setup: The setup of each process.
      count: Largest number of processes.
    """
    self._function, self._setup, self._count = function, setup, count
    self._idle: list[Worker] = []
    self._busy: dict[Worker, tuple[int, jobs_lib.JobT, float]] = {}

  def close(self) -> None:
    """Ends all processes."""
    for process in (*self._idle, *self._busy):
      process.close()
    self._idle, self._busy = [], {}

  def run(
      self,
      jobs: Sequence[jobs_lib.JobT]) -> Iterator[jobs_lib.Ended[jobs_lib.JobT]]:
    """See `jobs.Team`."""
    waiting = list(enumerate(jobs))[::-1]
    self._prepare(min(self._count, len(waiting)))
    try:
      while waiting or self._busy:
        while waiting and len(self._busy) < self._count:
          self._start(*waiting.pop())
        yield from self._ended()
    finally:
      # If the caller stops early, jobs still run. Their results must not reach
      # the next run.
      for process in self._busy:
        process.close()
      self._busy = {}

  def _prepare(self, count: int) -> None:
    """Makes sure that there are idle processes, and that all are alive.

    A process reads its first job after its start, and sending a large job
    waits for that. So all processes start before the first job is sent.
    """
    idle, self._idle = self._idle, []
    for process in idle:
      if process.alive:
        self._idle.append(process)
      else:
        process.close()
    while len(self._idle) < count:
      self._idle.append(Worker(self._function, self._setup))

  def _start(self, index: int, job: jobs_lib.JobT) -> None:
    process = (self._idle.pop() if self._idle else Worker(
        self._function, self._setup))
    self._busy[process] = index, job, time.monotonic()
    try:
      process.send(job)
    except worker_process.Died:
      return  # `_ended` reports this.

  def _ended(self) -> Iterator[jobs_lib.Ended[jobs_lib.JobT]]:
    with selectors.DefaultSelector() as selector:
      for process in self._busy:
        selector.register(process, selectors.EVENT_READ, process)
      ready = [key.data for key, _ in selector.select(_TICK_S)]
    now = time.monotonic()
    late = [
        process for process, (_, job, start) in self._busy.items()
        if now > start + job.timeout_s + jobs_lib.GRACE_S
    ]
    for process in dict.fromkeys((*ready, *late)):
      index, job, start = self._busy[process]
      try:
        result, problem = process.receive(jobs_lib.GRACE_S if process in
                                          ready else 0.)
        self._idle.append(process)
      except worker_process.Died as error:
        limit_s = job.timeout_s + jobs_lib.GRACE_S
        result, problem = None, (str(error) if process in ready else
                                 f'no answer within {limit_s:g} s')
        process.close()
      # Until this line the process counts as busy. So `run` ends it if the user
      # interrupts `receive`.
      del self._busy[process]
      yield jobs_lib.Ended(index, job, result, problem, now - start)
