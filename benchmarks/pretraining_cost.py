"""Prints the time of pre-training on many graphs, by the number of machines.

Run it from the repository with `python -m benchmarks.pretraining_cost`. The
program measures processor seconds of drawing a problem, of the search, of
learning from the search's moves, and of the driver's work for one job. It also
measures the bytes of a log. All other numbers are extrapolated: the searches
are divided evenly among the machines, one machine learns and drives, and a
round ends with its last search. The network between machines is not measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from typing import Any

import numpy as np

from benchmarks import ray_jobs
from benchmarks import tables
from gdp_grappler import extras
from gdp_grappler import progress
from gdp_grappler.features.moves import schema
from gdp_grappler.placers.search.moves import move_scoring
from gdp_grappler.processes import jobs as jobs_lib
from gdp_grappler.processes import ray_machines
from placer_model.pretraining import learner as learner_lib
from placer_model.pretraining import logs
from placer_model.pretraining import pretrain_config
from placer_model.pretraining import searches

_TITLE = 'Pre-training'
_HEAD = ('machines', 'cores', 'searches', 'learning', "driver's part of jobs",
         'in all', 'saturated first by')
_ECHO = f'{ray_jobs.__name__}:echoing'


@dataclasses.dataclass(frozen=True)
class _Measured:
  """Costs of problems. All seconds are of the processor, except `job_s`.

  Attributes:
    searches_s: [P], seconds to draw each problem and to search on it.
    learn_s: Seconds to learn from the moves of a problem, in one pass.
    job_s: Seconds that the driver is busy with a job and its log.
    log_bytes: Mean size of a log, in bytes.
  """

  searches_s: tuple[float, ...]
  learn_s: float
  job_s: float
  log_bytes: float


def _table(arguments: argparse.Namespace) -> tables.Table:
  extras.require('pretraining_cost', 'ray')
  config = pretrain_config.named(arguments.config)
  measured = _measure(config, arguments.sampled)
  rows = [
      _row(config, measured, arguments.graphs, machines, arguments.cores)
      for machines in arguments.machines
  ]
  problems = measured.searches_s
  mean_s = float(np.mean(problems))
  return tables.Table(
      f'{arguments.graphs} graphs, config {arguments.config}, extrapolated '
      f'from {len(problems)} problems: {mean_s:.1f} s of processor time '
      f'to search on one ({max(problems):.1f} at most), '
      f'{measured.learn_s * 1e3:.0f} ms to learn from it in a pass, a log of '
      f'{measured.log_bytes / 1e6:.2f} MB, {measured.job_s * 1e3:.1f} ms of '
      'the driver (measured)', _HEAD, [_cells(row) for row in rows], rows)


def _measure(config: pretrain_config.PretrainConfig, count: int) -> _Measured:
  found, seconds = [], []
  for number in range(count):
    progress.doing(f'problem {number + 1} of {count}')
    begin = time.process_time()
    log = searches.draw(config, np.random.default_rng((0, 0, 0, number)), 1)
    seconds.append(time.process_time() - begin)
    found += [log] if log is not None else []
  log = logs.joined(found)
  rng = np.random.default_rng(0)
  learner = learner_lib.Learner(
      learner_lib.first_network(schema.names(move_scoring.KINDS), log,
                                config.hidden, rng), config)
  begin = time.process_time()
  learner.learn(log, rng)
  learn_s = (time.process_time() - begin) / len(found)
  return _Measured(tuple(seconds), learn_s, _job_s(found[0]),
                   float(np.mean([_bytes(log) for log in found])))


def _bytes(log: logs.Log) -> int:
  return sum(
      getattr(log, field.name).nbytes for field in dataclasses.fields(log))


def _job_s(log: logs.Log, count: int = 200) -> float:
  """Processor seconds of the driver for a job that gives back a log."""
  progress.doing('timing the driver')
  jobs = [jobs_lib.Call(f'job {number}') for number in range(count)]
  with ray_machines.RayMachines(ray_machines.LOCAL, 2) as machines:
    with machines.team(_ECHO, log) as team:
      team.results(jobs[:8], shown=False)
      begin = time.process_time()
      team.results(jobs, shown=False)
      return (time.process_time() - begin) / count


def _row(config: pretrain_config.PretrainConfig, measured: _Measured,
         graphs: int, machines: int, cores: int) -> dict[str, Any]:
  """Returns the seconds of all rounds of learning from a number of graphs."""
  rounds = math.ceil(graphs / config.problems)
  at_once = min(machines * cores, config.problems)
  mean_s = float(np.mean(measured.searches_s))
  worst_s = float(np.max(measured.searches_s))
  search_s = rounds * max(worst_s, config.problems * mean_s / at_once)
  # Each round also learns from a limited number of earlier rounds.
  remembered = sum(min(number + 1, config.memory) for number in range(rounds))
  learn_s = (remembered * config.problems * config.networks * config.passes
             * measured.learn_s)
  driver_s = graphs * measured.job_s
  parts = {'searches': search_s, 'learning': learn_s, 'driver': driver_s}
  return {
      'machines':
          machines, 'cores':
              machines * cores, **{
                  f'{name}_s': float(seconds) for name, seconds in parts.items()
              }, 'all_s':
          float(sum(parts.values())), 'saturated_by':
              max(parts, key=parts.__getitem__) if machines * cores
              <= config.problems else f'a round has {config.problems} searches'
  }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
  return (str(row['machines']), str(row['cores']),
          *(f'{row[name] / 60:.1f} min'
            for name in ('searches_s', 'learning_s', 'driver_s', 'all_s')),
          row['saturated_by'])


main = tables.program(
    'pretraining_cost', __doc__, _TITLE, _table,
    tables.option('--config', default='full'),
    tables.option('--graphs', type=int, default=1000),
    tables.option('--sampled', type=int, default=16,
                  help='problems that are drawn and measured'),
    tables.option('--machines', type=int, nargs='*', default=[1, 10, 100]),
    tables.option('--cores', type=int, default=16, help='of each machine'))

if __name__ == '__main__':
  sys.exit(main())
