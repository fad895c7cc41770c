"""Computes all cells of a table of the papers, by gdp_bench or from batches."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
from typing import Any, Iterator, Mapping

import rich.console

from benchmarks.paper import batches as batches_lib
from benchmarks.paper import columns as columns_lib
from gdp_grappler import environment
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import runner
from placer_model.benchmark import settings as settings_lib

# A task in the results of gdp_bench. The keys of its cells are column names.
Task = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Options:
  """Options for the computation of cells.

  Attributes:
    settings: Settings of all cells.
    work_dir: Folder for the results of finished cells.
    command: The command that the user typed.
    console: The console for progress.
  """

  settings: settings_lib.Settings
  work_dir: pathlib.Path
  command: str
  console: rich.console.Console


def of(part: columns_lib.Part, options: Options) -> list[Task]:
  """Returns the tasks of a part, with the cells of all its columns.

  Raises:
    GdpError: bad input, or a full disk.
    runner.Interrupted: Ctrl-C.
  """
  tasks = {
      task['name']: task for task in _run(part.tasks, part.placers, options)
  }
  batches = batches_lib.Batches(options.work_dir, options.settings)
  for column in part.columns:
    if column.batch is None:
      continue
    for name in filter(column.has, tasks):
      tasks[name]['cells'][column.name] = _cell(column, name, tasks, batches,
                                                options)
  return list(tasks.values())


def _cell(column: columns_lib.Column, task: str, tasks: Mapping[str, Task],
          batches: batches_lib.Batches, options: Options) -> Mapping[str, Any]:
  """The record of a column that has a batch."""
  assert column.batch is not None
  options.console.print(f'{task}: {column.name}, a policy that has learned '
                        f'{", ".join(column.batch.members(task))}')
  try:
    records, policy = batches.learned(column.batch, task, tasks,
                                      bool(column.placer))
  except batches_lib.BatchError as error:
    return {'status': cell_lib.FAILED, 'message': str(error)}
  if not column.placer:
    return records[task]
  with _policy(policy):
    found, = _run((task,), (column.placer,), options)
  return found['cells'][column.placer]


def _run(tasks: tuple[str, ...], placers: tuple[str, ...],
         options: Options) -> list[Task]:
  """Runs gdp_bench. Cells that are finished are not run again."""
  results = runner.run(
      runner.BenchOptions(tasks=','.join(tasks), placers=','.join(placers),
                          out_dir=options.work_dir, settings=options.settings,
                          command=options.command, folder_flag='--work_dir'),
      options.console)
  return results['tasks']


@contextlib.contextmanager
def _policy(folder: pathlib.Path) -> Iterator[None]:
  """In the context, placers load the policy of this folder."""
  before = os.environ.get(environment.POLICY)
  os.environ[environment.POLICY] = str(folder.absolute())
  try:
    yield
  finally:
    if before is None:
      del os.environ[environment.POLICY]
    else:
      os.environ[environment.POLICY] = before
