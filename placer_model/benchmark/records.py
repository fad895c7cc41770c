"""Files of a run: a record and a plan per cell, and all results."""

from __future__ import annotations

import pathlib
from typing import Any

from gdp_grappler import digests
from gdp_grappler import errors
from gdp_grappler import files
from gdp_grappler.cluster import plan
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import results_shape
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib
from placer_model.training import json_files

RESULTS = 'results.json.gz'


class Folder:
  """Paths of the files in an output folder."""

  def __init__(self, path: pathlib.Path) -> None:
    """Takes an existing folder."""
    self.path = path

  def record(self, task: tasks_lib.Task, placer: str, key: str) -> pathlib.Path:
    """Returns the file of a cell's record."""
    return self.path / 'cells' / task.file_name / f'{placer}-{key}.json'

  def plan(self, task: tasks_lib.Task, placer: str, key: str) -> pathlib.Path:
    """Returns the file of a cell's placement."""
    return self.path / 'plans' / task.file_name / f'{placer}-{key}.json'

  def picture(self, name: str) -> pathlib.Path:
    """Returns the file of a picture of all tasks."""
    return self.path / 'pictures' / f'{name}.png'

  def chart(self, task: str) -> pathlib.Path:
    """Returns the file of a task's chart; `task` is `Task.file_name`."""
    return self.path / 'pictures' / 'gantt' / f'{task}.png'

  def write_results(self, results: dict[str, Any]) -> None:
    """Writes `RESULTS`.

    Raises:
      GdpError: the file cannot be written.
    """
    files.write_compressed_json(self.path / RESULTS, results)


def write(path: pathlib.Path, key: str, task: str, placer: str,
          fields: dict[str, Any]) -> None:
  """Writes the record of a finished cell; a reader never sees a part of it.

  Raises:
    GdpError: the file cannot be written.
  """
  json_files.write_json(
      path,
      digests.sealed({
          'schema': settings_lib.SCHEMA, 'key': key, 'task': task,
          'placer': placer, **fields
      }))


def write_failure(path: pathlib.Path, key: str, task: str, placer: str,
                  message: str) -> dict[str, Any]:
  """Writes and returns the record of a cell without a result.

  Raises:
    GdpError: the file cannot be written.
  """
  write(path, key, task, placer,
        {'status': cell_lib.FAILED, 'message': message})
  return read(path, key) or {}


def read_results(path: pathlib.Path) -> dict[str, Any]:
  """Returns the results that `Folder.write_results` wrote.

  Raises:
    GdpError: the file cannot be read, is of another version, or has a wrong
      structure.
  """
  remedy = f'Give the {RESULTS} of an output folder as it was made.'
  try:
    found = files.read_compressed_json(path)
  except errors.GdpError as error:
    raise errors.GdpError(f'{error} {remedy}') from error
  if not isinstance(found, dict) or found.get('schema') != settings_lib.SCHEMA:
    raise errors.GdpError(f'{path} has no results that this version of '
                          'gdp_bench can read.')
  fault = results_shape.fault(found)
  if fault:
    raise errors.GdpError(
        f'{path} has no results of gdp_bench: {fault}. {remedy}')
  return found


def has_plan(path: pathlib.Path) -> bool:
  """Returns whether the file has a readable plan, even an edited one."""
  try:
    plan.read(str(path))
  except errors.PlanError:
    return False
  return True


def read(path: pathlib.Path, key: str) -> dict[str, Any] | None:
  """Returns the record of a cell; None without a usable one."""
  try:
    found = files.parse_json(files.read(path))
  except (OSError, ValueError):
    return None  # Missing or damaged: the cell is computed again.
  usable = (isinstance(found, dict) and found.get('key') == key and
            found.get('schema') == settings_lib.SCHEMA and
            not digests.differs(found))
  return found if usable else None
