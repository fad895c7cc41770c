"""Interfaces of jobs and of the machines that run them.

`Machines` are processes of this machine (`local_team`) or a Ray cluster
(`ray_machines`). The result of a job does not depend on the machines or on the
number of jobs that run at the same time.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Generic, Iterator, Protocol, Sequence, TypeVar

from gdp_grappler import errors
from gdp_grappler import progress

# Seconds after its time limit at which a job is ended.
GRACE_S = 60.


class JobError(errors.GdpError):
  """A job has no result. The message names the job and says why."""


class Job(Protocol):
  """Work for a worker. A job is pickled."""

  @property
  def name(self) -> str:
    """Name of the job in messages."""

  @property
  def timeout_s(self) -> float:
    """Time limit of the job, in seconds."""


JobT = TypeVar('JobT', bound=Job)


@dataclasses.dataclass(frozen=True)
class Call:
  """A job that consists of arguments.

  Attributes:
    name: See `Job`.
    arguments: Arguments of the worker's function.
    timeout_s: See `Job`.
  """

  name: str
  arguments: tuple[Any, ...] = ()
  timeout_s: float = 24 * 3600.


@dataclasses.dataclass(frozen=True)
class Ended(Generic[JobT]):
  """A job that has ended.

  Attributes:
    index: Index of the job among the jobs of a run.
    job: The job.
    result: Result of the worker; None if there is a problem.
    problem: Why there is no result, in one line; '' if there is one.
    seconds: Duration of the job on its machine, without waiting.
  """

  index: int
  job: JobT
  result: Any
  problem: str
  seconds: float


class Team(abc.ABC, Generic[JobT]):
  """Workers with a common setup. A team is a context manager."""

  def __enter__(self) -> Team[JobT]:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  @abc.abstractmethod
  def close(self) -> None:
    """Ends the jobs and workers that are still running."""

  @abc.abstractmethod
  def run(self, jobs: Sequence[JobT]) -> Iterator[Ended[JobT]]:
    """Runs all jobs. A job that fails does not stop the others.

    Args:
      jobs: The jobs, in the order in which they start.

    Yields:
      Jobs as they end, in any order.
    """

  def results(self, jobs: Sequence[JobT], shown: bool = True) -> list[Any]:
    """Returns the results of all jobs, in the order of the jobs.

    Args:
      jobs: The jobs, in the order in which they start.
      shown: Whether the progress of the jobs is reported as the program's.

    Raises:
      JobError: a job failed. The others are given up.
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
  """Machines on which jobs run."""

  @property
  def width(self) -> int:
    """Number of jobs that can run at the same time now, at least 1."""

  def team(self, function: str, setup: Any,
           whole_host: bool = False) -> Team[Any]:
    """Returns workers for jobs of one kind. They start with the first jobs.

    Args:
      function: 'package.module:function'. This function gets the setup, and
        returns the function that is called with each job; see `job_worker`.
      setup: Data that all jobs need. It is pickled and sent once per worker.
      whole_host: Whether a job needs all devices of a host.
    """
