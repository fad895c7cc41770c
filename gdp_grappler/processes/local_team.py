"""Jobs in processes of this machine."""

from __future__ import annotations

import os
import selectors
import time
from typing import Any, Iterator, Sequence

from gdp_grappler import scratch
from gdp_grappler.processes import job_worker
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import worker_process

_TICK_S, _LEAVING_S = .5, 5.
_SERVE = f'{job_worker.__name__}:main'


class Here(jobs_lib.Machines):
  """This machine.

  Attributes:
    width: See `jobs.Machines`.
  """

  def __init__(self, width: int) -> None:
    """That runs `width` jobs side by side."""
    self._width = width

  def __enter__(self) -> Here:
    return self

  def __exit__(self, *unused_error: object) -> None:
    """There is nothing to be ended: teams end their processes."""

  @property
  def width(self) -> int:
    """Jobs at a time."""
    return self._width

  def team(self, function: str, setup: Any,
           whole_host: bool = False) -> LocalTeam[Any]:
    """See `jobs.Machines`."""
    return LocalTeam(function, setup, 1 if whole_host else self._width)


class Worker:
  """A process that answers jobs, and the folder for its temporary files."""

  def __init__(self, function: str, setup: Any) -> None:
    """Starts it.

    Args:
      function: As of `jobs.Machines.team`.
      setup: For it.
    """
    # A process that is killed removes nothing.
    self._folder = scratch.Folder('gdp_job')
    self._process = worker_process.WorkerProcess(_SERVE, [function],
                                                 {'TMPDIR': self._folder.name})
    try:
      self._process.send(setup)
    except worker_process.Died:
      pass  # Whoever sends it a job is told.

  @property
  def alive(self) -> bool:
    """Whether its process runs."""
    return self._process.alive

  @property
  def pid(self) -> int:
    """Of its process; None before it starts."""
    return self._process.pid

  def fileno(self) -> int:
    """Becomes readable when it answers or ends; for selectors."""
    return self._process.fileno()

  def send(self, job: jobs_lib.Job) -> None:
    """Hands over a job.

    Raises:
      Died: it has ended.
    """
    self._process.send(job)

  def receive(self, timeout_s: float) -> tuple[Any, str]:
    """The result of the job and '', or None and why there is none.

    Raises:
      Died: it has ended, or it takes too long.
    """
    result, problem = self._process.receive(timeout_s)
    return result, problem

  def close(self) -> None:
    """Ends it, and removes what it has left."""
    self._process.close()
    # What it has forked may write for a moment.
    deadline = time.monotonic() + _LEAVING_S
    self._folder.cleanup()
    while os.path.exists(self._folder.name) and time.monotonic() < deadline:
      time.sleep(_LEAVING_S / 100)
      self._folder.cleanup()


class LocalTeam(jobs_lib.Team[jobs_lib.JobT]):
  """Processes that run jobs, one at a time each."""

  def __init__(self, function: str, setup: Any, count: int) -> None:
    """Starts up to `count` of them, when there are jobs.

    Args:
      function: As of `jobs.Machines.team`.
      setup: For each of them.
      count: Most of them.
    """
    self._function, self._setup, self._count = function, setup, count
    self._idle: list[Worker] = []
    self._busy: dict[Worker, tuple[int, jobs_lib.JobT, float]] = {}

  def close(self) -> None:
    """Ends them all."""
    for process in (*self._idle, *self._busy):
      process.close()
    self._idle, self._busy = [], {}

  def run(
      self,
      jobs: Sequence[jobs_lib.JobT]) -> Iterator[jobs_lib.Ended[jobs_lib.JobT]]:
    """See `jobs.Team`."""
    waiting = list(enumerate(jobs))[::-1]
    try:
      while waiting or self._busy:
        while waiting and len(self._busy) < self._count:
          self._start(*waiting.pop())
        yield from self._ended()
    finally:
      # Of a caller who has seen enough: the next jobs are others.
      for process in self._busy:
        process.close()
      self._busy = {}

  def _start(self, index: int, job: jobs_lib.JobT) -> None:
    process = (self._idle.pop() if self._idle else Worker(
        self._function, self._setup))
    self._busy[process] = index, job, time.monotonic()
    try:
      process.send(job)
    except worker_process.Died:
      return  # `_ended` finds out.

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
        result, problem = None, str(error)
        process.close()
      # Until here whoever interrupts finds it among those to be ended.
      del self._busy[process]
      yield jobs_lib.Ended(index, job, result, problem, now - start)
