"""`gdp_bench`: compares placers on the papers' tasks, or on graphs of yours.

  gdp_bench --tasks=all --placers=heuristics --out_dir=results
  gdp_bench --tasks=rnnlm-2@2xP100,captured.pb@4xV100 --placers=all
      --out_dir=results
  gdp_bench --report=results/results.json.gz --out_dir=results

A task is a workload, or any other graph, on a cluster. Run the same command
again to go on after an interruption. Exit codes: 0, 1 if a cell failed, 2 for
bad input, 130 for Ctrl-C.
"""

from __future__ import annotations

import json
import os
import pathlib
import types
from typing import Any

from gdp_grappler import environment

# Set before TensorFlow is imported: the plugin has nothing to place here.
os.environ.update(environment.without_plugin())

from absl import flags
from absl import logging

from gdp_grappler import errors
from gdp_grappler import extras
from gdp_grappler import files
from gdp_grappler.problems import help_texts
from gdp_grappler.problems import rewards
from placer_model.benchmark import clocks
from placer_model.bin import command_line

_TASKS = flags.DEFINE_string(
    'tasks', None, "'all' for those of the papers, or GRAPH[@CLUSTER],...; "
    f'GRAPH is {help_texts.GRAPH}. CLUSTER is a {help_texts.CLUSTER}.')
_PLACERS = flags.DEFINE_string(
    'placers', None, "'all', 'heuristics', 'learned' or names, separated by "
    "commas; by default 'heuristics' with --quick, else 'all'.")
_OUT_DIR = flags.DEFINE_string(
    'out_dir', None, 'Where tables, pictures, plans and results.json.gz '
    'go. Cells that are already there are kept.')
_REPORT = flags.DEFINE_string(
    'report', None, 'A results.json.gz whose tables and pictures are written '
    'again; no cell runs.')
_QUICK = flags.DEFINE_boolean(
    'quick', False, 'Small variants of the workloads, and searches of 2 s.')
_REWARD = flags.DEFINE_enum(
    'reward', rewards.SIMULATED, list(rewards.ALL),
    'Price placements by simulation, or run them: on the devices of this '
    'machine or on --local_workers, or on emulated GPUs.')
_TIME_BUDGET_S = flags.DEFINE_float(
    'time_budget_s', None, 'Seconds for each search. By default a search ends '
    'by limits of its own; with --quick, after 2 s if its placer does not '
    'learn.', lower_bound=0)
_CELL_TIMEOUT_S = flags.DEFINE_float(
    'cell_timeout_s', None, 'A cell that takes longer has failed; by default '
    '15 minutes, 2 with --quick, 6 hours for those that learn, and the budget '
    'on top.', lower_bound=1)
_JOBS = flags.DEFINE_integer(
    'jobs', 1, 'Cells side by side. They share the cores, so seconds of '
    'searches are longer than alone and searches with a time budget get less '
    'far.', lower_bound=1)
_CLOCK = flags.DEFINE_enum(
    'clock', clocks.WALL, list(clocks.CLOCKS),
    'Measures the seconds of searches: the time that passes, or the processor '
    'time of a search and its processes, whatever else the machine does.')
_JSON = flags.DEFINE_boolean('json', False, 'Print all results as JSON.')
_LINE = command_line.CommandLine(
    'gdp_bench', __doc__,
    (_TASKS, _PLACERS, _OUT_DIR, _REPORT, _QUICK, _REWARD,
     command_line.LOCAL_WORKERS, _TIME_BUDGET_S, _CLOCK, _CELL_TIMEOUT_S,
     command_line.SEED, _JOBS, command_line.BATCH_SIZE, command_line.TRIP_COUNT,
     command_line.PROFILE, command_line.MAX_MEMORY, command_line.MAY_ROUND,
     command_line.RAY, _JSON), lambda: [
         flag for flag, given in ((_TASKS, _TASKS.value or _REPORT.value),
                                  (_OUT_DIR, _OUT_DIR.value)) if not given
     ])


def run() -> None:
  """Runs the console script."""
  _LINE.run(main, 'nothing had been started yet.')


def main(argv: list[str]) -> int:
  """Compares placers, and returns the exit code."""
  del argv
  return _LINE.exit_code(
      f'writing the tables of {_REPORT.value} again'
      if _REPORT.value else f'comparing placers on {_TASKS.value}', _bench)


def _bench() -> int:
  _check()
  from placer_model.benchmark import runner
  from placer_model.benchmark import summary
  from placer_model.bin import console as console_lib
  logging.set_verbosity(logging.WARNING)
  # With --json, standard output is for the program that reads it.
  console = console_lib.Console(stderr=_JSON.value, quiet=_JSON.value and
                                command_line.QUIET.value)
  try:
    results = (runner.report_again(pathlib.Path(_REPORT.value),
                                   pathlib.Path(_OUT_DIR.value))
               if _REPORT.value else runner.run(_options(runner), console))
  except runner.Interrupted as interrupted:
    _LINE.say(str(interrupted))
    return 130
  if _JSON.value:
    command_line.print_line(json.dumps(results))
  else:
    summary.show(results, _OUT_DIR.value, console)
  failed = runner.failures(results)
  if failed:
    count = len(failed)
    _LINE.say(f'{count} cell{"s" * (count > 1)} failed, the first: {failed[0]}')
  return 1 if failed else 0


def _check() -> None:
  """Raises an error if the flags are wrong."""
  extras.require('gdp_bench', *extras.BENCH)
  command_line.check_ray()
  files.check_folder(_OUT_DIR.value)
  if _REPORT.value and _TASKS.value:
    raise errors.GdpError('--report runs nothing. Leave --tasks out.')
  measured = _REWARD.value == rewards.MEASURED
  if command_line.LOCAL_WORKERS.value and not measured:
    raise errors.GdpError('--local_workers are to measure on. Give '
                          '--reward=measured too.')
  if measured:
    from gdp_grappler.problems import request
    request.refuse_profile(command_line.PROFILE.value or '')
  if (command_line.RAY.value not in (None, 'local')) and _JOBS.value > 1:
    raise errors.GdpError('The processors of a Ray cluster say how many cells '
                          'run side by side. Leave --jobs out.')
  if (_REWARD.value != rewards.SIMULATED and _CLOCK.value == clocks.PROCESSOR):
    raise errors.GdpError('Steps run in processes of their own, which '
                          '--clock=processor does not see. Leave it out.')
  if _REWARD.value != rewards.SIMULATED and _JOBS.value > 1:
    raise errors.GdpError('Steps that are measured side by side disturb each '
                          'other. Leave --jobs out.')


def _options(runner: types.ModuleType) -> Any:
  """Returns the flags as `runner.BenchOptions`."""
  from placer_model.benchmark import settings
  return runner.BenchOptions(
      tasks=_TASKS.value, placers=_PLACERS.value or
      ('heuristics' if _QUICK.value else 'all'),
      out_dir=pathlib.Path(_OUT_DIR.value), settings=settings.Settings(
          seed=command_line.SEED.value, reward=_REWARD.value,
          quick=_QUICK.value, time_budget_s=_TIME_BUDGET_S.value,
          cell_timeout_s=_CELL_TIMEOUT_S.value,
          local_workers=command_line.LOCAL_WORKERS.value,
          batch_size=command_line.BATCH_SIZE.value,
          trip_count=command_line.TRIP_COUNT.value,
          profile=command_line.PROFILE.value or '', jobs=_JOBS.value,
          may_round=command_line.MAY_ROUND.value,
          max_memory=command_line.MAX_MEMORY.value, clock=_CLOCK.value),
      command=_LINE.typed(), ray=command_line.RAY.value)


if __name__ == '__main__':
  run()
