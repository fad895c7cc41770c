"""Runs partitioning libraries that print, crash or keep global state."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import math
import os
import threading
import time
from typing import Any, Callable, Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import errors
from gdp_grappler.placers import group_graph
from gdp_grappler.processes import calls

# Package of the worker modules.
_HERE = __name__.rpartition('.')[0]
# Largest integer distance; sums of such distances do not overflow a library.
_FARTHEST = 1 << 16
# Least seconds that jobs may take, because a process has to start.
_LEAST_S = 10.
# Most seconds that jobs may take.
_MOST_S = 600.


@dataclasses.dataclass(frozen=True, eq=False)
class PartitionJob:
  """One mapping of a graph to parts.

  Attributes:
    graph: V vertices and H nets.
    shares: float64 [k], share of the weight that each part should get.
    distances: float64 [k, k], symmetric; None if distances do not count.
    fixed: int64 [V], part that a vertex must be in; -1 for any part.
    imbalance: Allowed excess of a part, as a share of its weight.
    seed: Seed of the library's random generator, or of the order of vertices.
    begin_by_s: Moment of `time.monotonic`, which is the same clock in all
      processes. The job does not begin after this moment, unless it is the
      first one.
  """

  graph: group_graph.GroupGraph
  shares: np.ndarray
  distances: np.ndarray | None
  fixed: np.ndarray
  imbalance: float
  seed: int
  begin_by_s: float = math.inf


def lengths(distances: np.ndarray, shortest_length: int) -> np.ndarray:
  """int64 [k, k], integer distances for libraries.

  Between two parts the distance is at least 1, and small enough that a library
  can add distances without overflow.

  Args:
    distances: float64 [k, k], seconds.
    shortest_length: Integer that stands for the shortest distance above 0.
  """
  apart = ~np.eye(len(distances), dtype=bool)
  shortest = distances[apart & (distances > 0)].min(initial=np.inf)
  whole = np.round(distances / shortest * shortest_length)
  return np.where(apart, np.clip(whole, 1, _FARTHEST), 0).astype(np.int64)


class _Stdout:
  """Exchanges the stream `stdout` of the C library for /dev/null.

  Its users are the threads inside `stdout_dropped`.

  File descriptor 1 stays as it is, because it may be closed, and because lines
  that Python writes to it at the same time must not be lost.
  """

  def __init__(self) -> None:
    """Begins without users."""
    self._lock = threading.Lock()
    self._users = 0
    self._real: int | None = None

  def drop(self) -> None:
    """Exchanges the stream for the first of the users."""
    with self._lock:
      self._users += 1
      if self._users == 1 and (nowhere := _nowhere()):
        stream = _c_stdout()
        self._real, stream.value = stream.value, nowhere

  def restore(self) -> None:
    """Puts the stream back after the last of the users."""
    with self._lock:
      # In a forked child, this call may come without a call of `drop`.
      self._users = max(self._users - 1, 0)
      if not self._users:
        self._put_back()

  def after_fork(self) -> None:
    """Puts the stream back in a child, which has none of the other threads."""
    self._lock, self._users = threading.Lock(), 0
    self._put_back()

  def _put_back(self) -> None:
    if self._real is not None:
      _c_stdout().value, self._real = self._real, None


_STDOUT = _Stdout()
os.register_at_fork(after_in_child=_STDOUT.after_fork)


@contextlib.contextmanager
def stdout_dropped() -> Iterator[None]:
  """Discards the lines that C code prints; several threads may call it at once.

  Lines that other threads print by C's `printf` at the same time are lost, too.
  """
  _STDOUT.drop()
  try:
    yield
  finally:
    _STDOUT.restore()


def _c_stdout() -> ctypes.c_void_p:
  """The variable `stdout` of the C library."""
  return ctypes.c_void_p.in_dll(ctypes.CDLL(None), 'stdout')


@functools.cache
def _nowhere() -> int | None:
  """A C stream to /dev/null, which stays open; None if there is none."""
  native = ctypes.CDLL(None)
  if not hasattr(native, 'gnu_get_libc_version'):
    return None  # Only glibc lets programs assign `stdout`.
  native.fopen.restype = ctypes.c_void_p
  return native.fopen(os.devnull.encode(), b'we')


@dataclasses.dataclass(frozen=True)
class Worker:
  """A library in a process of its own, for one placer.

  Attributes:
    library: Name of the library. The module `<library>_worker` in this folder
      has the function `run`, which runs jobs.
    placer: Name of the placer, for errors.
    environment: Environment variables beside those of this process.
  """

  library: str
  placer: str
  environment: Mapping[str, str] | None = None

  def run_each(self, jobs: Sequence[Mapping[str, Any]],
               deadline: deadlines.Deadline) -> list[np.ndarray | None]:
    """Runs jobs; the parts of each, or None if there are none.

    There are none if the library refuses the job, or if its turn comes too
    late.

    Args:
      jobs: Fields of each `PartitionJob`, except `begin_by_s`.
      deadline: The end of the time budget.

    Raises:
      GdpError: no job has a solution.
    """
    if not jobs:
      return []
    timeout_s, begin_by_s = _MOST_S, math.inf
    # If the clock stands still (`Problem.by_count`), no time limit acts. The
    # number of jobs then limits the work.
    if deadline.clock is not deadlines.still:
      timeout_s = min(_MOST_S, max(deadline.remaining_s, _LEAST_S))
      begin_by_s = time.monotonic() + deadline.remaining_s
    return self._halved([{**job, 'begin_by_s': begin_by_s} for job in jobs],
                        deadlines.within(timeout_s))

  def run(self, jobs: Any, timeout_s: float) -> Any:
    """Runs jobs in one process, and returns the result.

    Args:
      jobs: Argument of the library's `run`.
      timeout_s: Seconds that the process may take.

    Raises:
      GdpError: the process died or took too long, or the library refused a job.
    """
    try:
      return calls.call(f'{_HERE}.{self.library}_worker:run', jobs,
                        timeout_s=timeout_s, environment=self.environment)
    except calls.CallError as error:
      raise errors.GdpError(
          f'The placer "{self.placer}" failed: {error}. Use another placer, '
          'such as "metis".') from error

  def _halved(self, jobs: Sequence[Mapping[str, Any]],
              deadline: deadlines.Deadline) -> list[np.ndarray | None]:
    """Runs jobs in one process; if it fails, each half in a new process.

    A job without a solution ends the process of all jobs, and so does a crash
    of the library. The jobs are halved until the failing job is alone or the
    time is over.
    """
    try:
      parts: list[np.ndarray | None] = self.run(jobs, deadline.remaining_s)
      return parts
    except errors.GdpError as error:
      if len(jobs) == 1 or deadline.passed:
        raise
      problem = error
    middle, parts = len(jobs) // 2, []
    for half in (jobs[:middle], jobs[middle:]):
      if deadline.passed:
        parts += [None] * len(half)
        continue
      try:
        parts += self._halved(half, deadline)
      except errors.GdpError as error:
        problem = error
        parts += [None] * len(half)
    if all(row is None for row in parts):
      raise problem
    return parts


def in_time(jobs: Sequence[PartitionJob],
            run: Callable[[Any], np.ndarray]) -> list[np.ndarray | None]:
  """Runs jobs one after the other; None for jobs whose turn comes too late.

  Nothing stops the library during a job. But the next job need not begin.

  Args:
    jobs: The jobs. The first one always runs.
    run: Runs one job.
  """
  return [
      run(job) if not number or time.monotonic() <= job.begin_by_s else None
      for number, job in enumerate(jobs)
  ]
