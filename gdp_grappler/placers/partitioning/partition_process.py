"""How placers run libraries that print, crash or keep global state."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import os
import sys
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.placers import group_graph
from gdp_grappler.processes import calls

_HERE = __name__.rpartition('.')[0]
_FARTHEST = 1 << 16


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
  """One mapping of a graph to parts.

  Attributes:
    graph: V vertices and H nets.
    shares: float64 [k], weight that each part should get.
    distances: float64 [k, k], symmetric; None if all are alike.
    fixed: int64 [V], part of a vertex that has one, else -1.
    imbalance: How much more a part may get.
    seed: Of the library's random generator, or what stands for it.
  """

  graph: group_graph.GroupGraph
  shares: np.ndarray
  distances: np.ndarray | None
  fixed: np.ndarray
  imbalance: float
  seed: int


def lengths(distances: np.ndarray, steps: int) -> np.ndarray:
  """int64 [k, k], distances [k, k] in whole numbers, for libraries.

  Multiples of the shortest that is not 0, each in so many steps. From one part
  to another it is at least one, and never so far that a sum overflows.
  """
  apart = ~np.eye(len(distances), dtype=bool)
  shortest = distances[apart & (distances > 0)].min(initial=np.inf)
  whole = np.round(distances / shortest * steps)
  return np.where(apart, np.clip(whole, 1, _FARTHEST), 0).astype(np.int64)


@contextlib.contextmanager
def stdout_dropped() -> Iterator[None]:
  """Drops what native code prints to standard output."""
  native = ctypes.CDLL(None)
  sys.stdout.flush()
  native.fflush(None)
  real = os.dup(1)
  nowhere = os.open(os.devnull, os.O_WRONLY)
  os.dup2(nowhere, 1)
  try:
    yield
  finally:
    native.fflush(None)
    os.dup2(real, 1)
    os.close(real)
    os.close(nowhere)


def call_each(
    placer: str, jobs: Sequence[Any], timeout_s: float,
    environment: Mapping[str, str] | None = None) -> list[np.ndarray | None]:
  """The parts that a library makes, of each job; None where it gave up on one.

  A job without a solution, or on which the library crashes, ends the process
  for all: they run in halves then, until it is alone.

  Args:
    placer: As of `call_worker`, like all else.
    jobs: At least one.
    timeout_s: How long a process may take.
    environment: Variables beside those of this process.

  Raises:
    GdpError: no job has a solution.
  """
  try:
    found: list[np.ndarray | None] = call_worker(placer, jobs, timeout_s,
                                                 environment)
    return found
  except errors.GdpError:
    if len(jobs) == 1:
      raise
  middle, found = len(jobs) // 2, []
  for half in (jobs[:middle], jobs[middle:]):
    try:
      found += call_each(placer, half, timeout_s, environment)
    except errors.GdpError as error:
      problem = error
      found += [None] * len(half)
  if all(parts is None for parts in found):
    raise problem
  return found


def call_worker(placer: str, jobs: Sequence[Any], timeout_s: float,
                environment: Mapping[str, str] | None = None) -> Any:
  """What a library makes of some jobs, in a process of its own.

  Args:
    placer: Name; the module `<placer>_worker` here has the function `run`.
    jobs: Its argument.
    timeout_s: How long it may take.
    environment: Variables beside those of this process.

  Raises:
    GdpError: the process died or took too long, or the library refused.
  """
  try:
    return calls.call(f'{_HERE}.{placer}_worker:run', jobs, timeout_s=timeout_s,
                      environment=environment)
  except calls.CallError as error:
    raise errors.GdpError(
        f'The placer "{placer}" failed: {error}. Use another placer, such as '
        '"metis".') from error
