"""The function that Ray runs for a job: it passes the job to another process.

The other process also runs jobs without Ray (`job_worker`). It may crash, fork
or load TensorFlow, and has not loaded Ray. A process of Ray keeps the other
process for all jobs of a team.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import os
import pathlib
import platform
import time
from typing import Any, Mapping, Sequence

from gdp_grappler import environment
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team
from gdp_grappler.processes import worker_process

# Variables that change results and differ between processes: Ray sets the
# number of threads by the processors that a job has reserved.
_VARIABLES = (environment.POLICY, 'OMP_NUM_THREADS')
_PACKAGES = ('tensorflow', 'numpy')
# Compiled at installation, or written at run time.
_NOT_COMPARED = ('.so', '.pyc', '.json')

# The name of the latest team, and the process for its jobs; at most one entry.
_kept: dict[str, local_team.Worker] = {}


def variables() -> dict[str, str | None]:
  """Returns environment variables for jobs; None if a variable is not set."""
  return {name: os.environ.get(name) for name in _VARIABLES}


@functools.cache
def installed(function: str) -> str:
  """Returns a digest of the code; it is equal on hosts that may share jobs.

  Args:
    function: 'package.module:function'.
  """
  result = hashlib.sha256(platform.python_version().encode())
  for package in _PACKAGES:
    result.update(importlib.metadata.version(package).encode())
  for package in sorted(
      {__package__.partition('.')[0],
       function.partition('.')[0]}):
    _add(importlib.import_module(package), result)
  return result.hexdigest()[:16]


def run(team: str, function: str, setup: Sequence[Any], job: jobs_lib.Job,
        code: str, seen: Mapping[str, str | None]) -> tuple[Any, str, float]:
  """Runs a job on this host.

  Args:
    team: Unique name of the team.
    function: See `jobs.Machines.team`.
    setup: [1], reference to the setup in Ray's store. It is fetched only if
      there is no process for the team.
    job: The job.
    code: Result of `installed` on the machine of the command.
    seen: Result of `variables` on the machine of the command.

  Returns:
    The result, the reason if there is none, and the seconds of the job.
  """
  if installed(function) != code:
    return None, (f'host {platform.node()} has another release of '
                  'gdp-grappler, Python, TensorFlow or numpy than where the '
                  'command was given; install the same on all'), 0.
  start = time.monotonic()
  try:
    process = _process(team, function, setup, seen)
    process.send(job)
    result, problem = process.receive(job.timeout_s + jobs_lib.GRACE_S)
  except worker_process.Died as error:
    _close()
    result, problem = None, str(error)
  return result, problem, time.monotonic() - start


def _process(team: str, function: str, setup: Sequence[Any],
             seen: Mapping[str, str | None]) -> local_team.Worker:
  if team not in _kept or not _kept[team].alive:
    import ray
    _close()
    for name, value in seen.items():
      os.environ.pop(name, None)
      if value is not None:
        os.environ[name] = value
    _kept[team] = local_team.Worker(function, ray.get(setup[0]))
  return _kept[team]


def _close() -> None:
  """Ends the process that is kept, if any."""
  for process in _kept.values():
    process.close()
  _kept.clear()


def _add(package: Any, result: Any) -> None:
  """Adds the files of a package, which may have no __init__.py, to a digest."""
  for folder in map(pathlib.Path, package.__path__):
    for path in sorted(folder.rglob('*')):
      if path.is_file() and path.suffix not in _NOT_COMPARED:
        for part in (path.relative_to(folder).as_posix().encode(),
                     path.read_bytes()):
          result.update(len(part).to_bytes(8))
          result.update(part)
