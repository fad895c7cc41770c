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

  File descriptor 1 stays as it is, because it may be closed, and because lines
  that Python writes to it at the same time must not be lost.
  """

  def __init__(self) -> None:
    """Initializes a _Stdout without users."""
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


def call_each(placer: str, jobs: Sequence[Any], timeout_s: float,
              environment: Mapping[str, str] | None = None,
              library: str = '') -> list[np.ndarray | None]:
  """Runs jobs; the parts of each, or None if there are none.

  There are none if the library refuses the job, or if its turn comes too late.

  A job without a solution ends the process of all jobs, and so does a crash of
  the library. Then each half of the jobs runs in a new process. The jobs are
  halved until the failing job is alone or the time is over.

  Args:
    placer: See `call_worker`.
    jobs: At least one job.
    timeout_s: Seconds that all processes together may take.
    environment: Environment variables beside those of this process.
    library: See `call_worker`.

  Raises:
    GdpError: no job has a solution.
  """

  def call(some: Sequence[Any], remaining_s: float) -> list[np.ndarray | None]:
    parts: list[np.ndarray | None] = call_worker(placer, some, remaining_s,
                                                 environment, library)
    return parts

  return _call_each(call, jobs, deadlines.within(timeout_s))


def begin_by_s(deadline: deadlines.Deadline) -> float:
  """`PartitionJob.begin_by_s` of jobs that are sent now.

  Args:
    deadline: The end of a time budget.
  """
  if deadline.clock is deadlines.still:
    return math.inf  # A number of jobs, and no clock, limits the work.
  return time.monotonic() + deadline.remaining_s


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


def timeout_s(deadline: deadlines.Deadline, longest_s: float) -> float:
  """Seconds that jobs may take.

  Args:
    deadline: The end of a time budget.
    longest_s: Seconds that jobs may take without a budget.
  """
  if deadline.clock is deadlines.still:
    return longest_s  # A number of jobs, and no clock, limits the work.
  return min(longest_s, max(deadline.remaining_s, _LEAST_S))


def _call_each(call: Callable[[Sequence[Any], float],
                              list[np.ndarray | None]], jobs: Sequence[Any],
               deadline: deadlines.Deadline) -> list[np.ndarray | None]:
  """See `call_each`; `call` runs jobs in a process within some seconds."""
  try:
    return call(jobs, deadline.remaining_s)
  except errors.GdpError as error:
    if len(jobs) == 1 or deadline.passed:
      raise
    problem = error
  middle = len(jobs) // 2
  parts: list[np.ndarray | None] = []
  for half in (jobs[:middle], jobs[middle:]):
    if deadline.passed:
      parts += [None] * len(half)
      continue
    try:
      parts += _call_each(call, half, deadline)
    except errors.GdpError as error:
      problem = error
      parts += [None] * len(half)
  if all(row is None for row in parts):
    raise problem
  return parts


def call_worker(placer: str, jobs: Sequence[Any], timeout_s: float,
                environment: Mapping[str, str] | None = None,
                library: str = '') -> Any:
  """Runs jobs by a library in a process of its own, and returns the result.

  Args:
    placer: Name of the placer.
    jobs: Argument of `run`.
    timeout_s: Seconds that the process may take.
    environment: Environment variables beside those of this process.
    library: Name of the library, by default that of the placer. The module
      `<library>_worker` in this folder has the function `run`.

  Raises:
    GdpError: the process died or took too long, or the library refused a job.
  """
  try:
    return calls.call(f'{_HERE}.{library or placer}_worker:run', jobs,
                      timeout_s=timeout_s, environment=environment)
  except calls.CallError as error:
    raise errors.GdpError(
        f'The placer "{placer}" failed: {error}. Use another placer, such as '
        '"metis".') from error
