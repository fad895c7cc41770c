"""What a run leaves on disk: a file and a plan per cell, and all results."""

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
  """The files of an output folder."""

  def __init__(self, path: pathlib.Path) -> None:
    """Of `path`, which exists."""
    self.path = path

  def record(self, task: tasks_lib.Task, placer: str, key: str) -> pathlib.Path:
    """File of a cell."""
    return self.path / 'cells' / task.file_name / f'{placer}-{key}.json'

  def plan(self, task: tasks_lib.Task, placer: str, key: str) -> pathlib.Path:
    """File of the placement of a cell."""
    return self.path / 'plans' / task.file_name / f'{placer}-{key}.json'

  def picture(self, name: str) -> pathlib.Path:
    """File of a picture of all tasks."""
    return self.path / 'pictures' / f'{name}.png'

  def chart(self, task: str) -> pathlib.Path:
    """File of the schedule of a task, given by `Task.file_name`."""
    return self.path / 'pictures' / 'gantt' / f'{task}.png'

  def write_results(self, results: dict[str, Any]) -> None:
    """Writes `RESULTS`.

    Raises:
      GdpError: it cannot be written.
    """
    files.write_compressed_json(self.path / RESULTS, results)


def write(path: pathlib.Path, key: str, task: str, placer: str,
          fields: dict[str, Any]) -> None:
  """Writes the record of a finished cell, whole or not at all.

  Raises:
    GdpError: it cannot be written.
  """
  json_files.write_json(
      path,
      digests.sealed({
          'schema': settings_lib.SCHEMA, 'key': key, 'task': task,
          'placer': placer, **fields
      }))


def write_failure(path: pathlib.Path, key: str, task: str, placer: str,
                  message: str) -> dict[str, Any]:
  """Writes and returns the record of a cell that has no result.

  Raises:
    GdpError: it cannot be written.
  """
  write(path, key, task, placer,
        {'status': cell_lib.FAILED, 'message': message})
  return read(path, key) or {}


def read_results(path: pathlib.Path) -> dict[str, Any]:
  """What `Folder.write_results` wrote.

  Raises:
    GdpError: it cannot be read, another version has written it, or it is not
      what one of gdp_bench looks like.
  """
  found = files.read_compressed_json(path)
  if not isinstance(found, dict) or found.get('schema') != settings_lib.SCHEMA:
    raise errors.GdpError(f'{path} has no results that this version of '
                          'gdp_bench can read.')
  fault = results_shape.fault(found)
  if fault:
    raise errors.GdpError(f'{path} has no results of gdp_bench: {fault}. Give '
                          f'the {RESULTS} of an output folder as it was made.')
  return found


def has_plan(path: pathlib.Path) -> bool:
  """Whether the placement of a cell is there, be it an edited one."""
  try:
    plan.read(str(path))
  except errors.PlanError:
    return False
  return True


def read(path: pathlib.Path, key: str) -> dict[str, Any] | None:
  """The record of a cell; None if there is none that can be used."""
  try:
    found = files.parse_json(files.read(path))
  except (OSError, ValueError):
    return None  # Not there, or damaged by whoever; it is computed again.
  usable = (isinstance(found, dict) and found.get('key') == key and
            found.get('schema') == settings_lib.SCHEMA and
            not digests.differs(found))
  return found if usable else None
