"""What Ray runs for a job: it hands it to a process of its own and waits.

That process is the one that runs jobs without Ray (`job_worker`): it may crash,
fork or load TensorFlow, and has nothing of Ray in it. A process of Ray's keeps
it from job to job of a team.
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

# What decides about results and is not the same in every process: Ray sets the
# number of threads by the processors that a job has reserved.
_VARIABLES = (environment.POLICY, 'OMP_NUM_THREADS')
_PACKAGES = ('tensorflow', 'numpy')
# Compiled where it is installed, or made when it is run.
_NOT_COMPARED = ('.so', '.pyc', '.json')

# The one process of this process of Ray's: the name of its team, and itself.
_kept: dict[str, local_team.Worker] = {}


def variables() -> dict[str, str | None]:
  """Those that a job is to see, as they are here; None for one not set."""
  return {name: os.environ.get(name) for name in _VARIABLES}


@functools.cache
def installed(function: str) -> str:
  """16 hex digits of what runs a function; equal on hosts that may share jobs.

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
    team: Its name, like no other's.
    function: As of `jobs.Machines.team`.
    setup: [1], where it is in Ray's store; fetched only if there is no process
      for the team.
    job: What to do.
    code: `installed` where the job comes from.
    seen: `variables` where the job comes from.

  Returns:
    Its result, '' or why there is none, and the seconds that it took.
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
  """Ends the process of this or another team."""
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
