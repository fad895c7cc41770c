"""Many jobs of one kind, and what becomes of them, whoever runs them.

`Machines` run them: processes of this machine (`local_team`) or a Ray cluster
(`ray_machines`). What a job gives depends on neither, nor on how many run side
by side.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Generic, Iterator, Protocol, Sequence, TypeVar

from gdp_grappler import errors
from gdp_grappler import progress

# What a job does without being asked: it is ended this much after its time.
GRACE_S = 60.


class JobError(errors.GdpError):
  """A job has no result; the message names it and says why."""


class Job(Protocol):
  """What a worker is asked; it is pickled."""

  @property
  def name(self) -> str:
    """What the user calls it, in messages."""

  @property
  def timeout_s(self) -> float:
    """How long it may take."""


JobT = TypeVar('JobT', bound=Job)


@dataclasses.dataclass(frozen=True)
class Call:
  """A job that is nothing but arguments.

  Attributes:
    name: As of `Job`.
    arguments: What is to be done.
    timeout_s: As of `Job`.
  """

  name: str
  arguments: tuple[Any, ...] = ()
  timeout_s: float = 24 * 3600.


@dataclasses.dataclass(frozen=True)
class Ended(Generic[JobT]):
  """What became of a job.

  Attributes:
    index: Its place among the jobs.
    job: Which.
    result: What the worker gave; None if there is a problem.
    problem: '' or why there is no result, in one line.
    seconds: What it took where it ran, waiting not included.
  """

  index: int
  job: JobT
  result: Any
  problem: str
  seconds: float


class Team(abc.ABC, Generic[JobT]):
  """Workers that have one setup in common; a context manager."""

  def __enter__(self) -> Team[JobT]:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  @abc.abstractmethod
  def close(self) -> None:
    """Ends what is still running."""

  @abc.abstractmethod
  def run(self, jobs: Sequence[JobT]) -> Iterator[Ended[JobT]]:
    """Runs all jobs; those that fail do not stop the others.

    Args:
      jobs: In the order in which they start.

    Yields:
      Jobs as they end, in any order.
    """

  def results(self, jobs: Sequence[JobT], shown: bool = True) -> list[Any]:
    """What each job gave, in the order of the jobs.

    Args:
      jobs: In the order in which they start.
      shown: Whether they are all that is being done, and their progress is its.

    Raises:
      JobError: one of them failed; the others are given up.
    """
    found: list[Any] = [None] * len(jobs)
    for done, ended in enumerate(self.run(jobs), 1):
      if ended.problem:
        raise JobError(f'{ended.job.name} failed: '
                       f'{ended.problem.rstrip(". ")}.')
      found[ended.index] = ended.result
      if shown:
        progress.reached(done / len(jobs), f'{done} of {len(jobs)} done')
    return found


class Machines(Protocol):
  """Where jobs run."""

  @property
  def width(self) -> int:
    """How many jobs run side by side now, at least 1."""

  def team(self, function: str, setup: Any,
           whole_host: bool = False) -> Team[Any]:
    """Workers for jobs of one kind; they start when there are jobs.

    Args:
      function: 'package.module:function', which makes of the setup what is
        called with each job; see `job_worker`.
      setup: What all jobs have in common; it is pickled and handed over once.
      whole_host: Whether a job needs all devices of a host for itself.
    """
