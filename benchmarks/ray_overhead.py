"""Prints the overhead of running jobs on Ray instead of in local processes.

Run it from the repository with `python -m benchmarks.ray_overhead`. Each row is
one kind of job: pricing of placements in jobs of a given length, or cells of
gdp_bench. With 1 and with 2 workers, the jobs run in local processes and on a
Ray cluster of this machine in turn, several times. The table has the medians of
jobs per second and of the overhead of each pair of runs. An untimed run of the
same jobs comes first each time, so that the timed run starts no process.

The exit code is 1 if a result differs, or if jobs of 0.1 s and more take more
than a tenth longer.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import statistics
import sys
import tempfile
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from benchmarks import ray_jobs
from benchmarks import tables
from gdp_grappler import extras
from gdp_grappler import progress
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import local_team
from gdp_grappler.processes import ray_machines
from placer_model.benchmark import cell_worker
from placer_model.benchmark import loading
from placer_model.benchmark import settings as settings_lib

_TITLE = 'Overhead of Ray'
_HEAD = ('jobs', 'workers', 'seconds of a job', 'per second, processes',
         'per second, Ray', 'overhead')
# Largest overhead, as a share of the time of jobs.
_MOST_OVERHEAD = .1
# Seconds from which a job is long.
_LONG_S = .1
_CELL = f'{cell_worker.__name__}:make'


@dataclasses.dataclass(frozen=True)
class _Kind:
  """Jobs that are compared.

  Attributes:
    name: Name of the jobs.
    function: The function of a job; see `jobs.Machines.team`.
    setup: The setup of the function; see `jobs.Machines.team`.
    jobs: The jobs, as arguments of the function.
    same: Returns whether two results of a job are equal.
  """

  name: str
  function: str
  setup: Any
  jobs: Sequence[jobs_lib.Job]
  same: Callable[[Any, Any], bool]


@dataclasses.dataclass(frozen=True)
class _Row:
  """The measurement of a kind of jobs with a number of workers."""

  jobs: str
  workers: int
  job_s: float
  here_per_s: float
  ray_per_s: float
  overhead: float
  same: bool

  @property
  def fails(self) -> bool:
    late = self.job_s >= _LONG_S and self.overhead > _MOST_OVERHEAD
    return late or not self.same

  @property
  def cells(self) -> tuple[str, ...]:
    verdict = '' if self.same else ', results differ'
    return (self.jobs, str(self.workers), f'{self.job_s:.3f}',
            f'{self.here_per_s:.2f}', f'{self.ray_per_s:.2f}',
            f'{self.overhead:+.1%}{verdict}')


def _overhead(arguments: argparse.Namespace) -> tables.Table:
  extras.require('ray_overhead', 'ray')
  kinds = list(_kinds(arguments))
  rows = []
  for workers in (1, 2):
    with ray_machines.RayMachines(ray_machines.LOCAL, workers) as cluster:
      for kind in kinds:
        progress.doing(f'{kind.name}, {workers} workers')
        rows.append(_row(kind, workers, cluster, arguments.repeats))
  return tables.Table(
      f'Jobs of {arguments.graph}@{arguments.cluster}, measured: processes '
      f'against a Ray cluster on {len(os.sched_getaffinity(0))} cores, medians '
      f'of {arguments.repeats} pairs in turn', _HEAD, [r.cells for r in rows],
      [dataclasses.asdict(r) for r in rows], any(r.fails for r in rows))


def _kinds(arguments: argparse.Namespace) -> Iterator[_Kind]:
  loaded = ray_jobs.loaded(arguments.graph, arguments.cluster)
  setup = loaded.graph, arguments.cluster
  placement_s = ray_jobs.placement_s(setup)
  for job_s in arguments.job_s:
    count = max(1, round(job_s / placement_s))
    jobs = ray_jobs.pricing(max(4, round(arguments.total_s / job_s)), count)
    yield _Kind(f'{count} placements priced', ray_jobs.PRICE, setup, jobs,
                np.array_equal)
  with tempfile.NamedTemporaryFile() as file:
    loading.save(pathlib.Path(file.name), loaded)
    data = file.read()
  settings = settings_lib.Settings()
  cells = [
      cell_worker.Run(name, 'key', settings.timeout_s(name))
      for name in arguments.placers.split(',')
  ]
  yield _Kind('cells of gdp_bench', _CELL, cell_worker.Setup(data, settings, 1),
              cells, _same_plan)


def _same_plan(one: cell_worker.Files, other: cell_worker.Files) -> bool:
  return one[cell_worker.PLAN] == other[cell_worker.PLAN]


def _row(kind: _Kind, workers: int, cluster: jobs_lib.Machines,
         repeats: int) -> _Row:
  here = local_team.Here(workers)
  with (here.team(kind.function, kind.setup) as
        ours, cluster.team(kind.function, kind.setup) as rays):
    warm = kind.jobs[:workers * 2]
    seconds: list[tuple[float, float]] = []
    same, job_s = True, 0.
    for turn in range(repeats):
      found = {}
      # The two ways begin in turn, so that a machine that slows down affects
      # both alike.
      for name, team in sorted({'here': ours, 'ray': rays}.items(),
                               reverse=bool(turn % 2)):
        team.results(warm, shown=False)
        found[name] = ray_jobs.timed(team, kind.jobs)
      same &= all(map(kind.same, found['here'][1], found['ray'][1]))
      seconds.append((found['here'][0], found['ray'][0]))
      job_s = found['here'][0] * workers / len(kind.jobs)
  ours_s, rays_s = (statistics.median(column) for column in zip(*seconds))
  return _Row(kind.name, workers, job_s,
              len(kind.jobs) / ours_s,
              len(kind.jobs) / rays_s,
              statistics.median(theirs / own for own, theirs in seconds) - 1,
              same)


main = tables.program(
    'ray_overhead', __doc__, _TITLE, _overhead,
    tables.option('--graph', default='rnnlm-2@tiny'),
    tables.option('--cluster', default='2xP100'),
    tables.option('--placers', default='single_device,m_etf,local_search'),
    tables.option('--job_s', type=float, nargs='*', default=[.02, .1, .5],
                  help='what jobs of pricing are to take'),
    tables.option('--total_s', type=float, default=6,
                  help='seconds of all jobs of a row, one after the other'),
    tables.option('--repeats', type=int, default=5))

if __name__ == '__main__':
  sys.exit(main())
