"""The process that has TensorFlow: lists workloads and loads graphs.

Answers `LIST` with a dict from workload to the accelerators that the papers
give it, and a `Load` with the task's summary or a `Failure`; see `messages`.
It ends with its parent.
"""

from __future__ import annotations

import dataclasses
import pathlib
import resource
import sys
from typing import Any

from gdp_grappler import errors
from gdp_grappler.processes import messages
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

LIST = 'list'


@dataclasses.dataclass(frozen=True)
class Load:
  """What to load, and where it goes.

  Attributes:
    task: Which.
    settings: Of the run.
    path: File for `loading.parse`.
  """

  task: tasks_lib.Task
  settings: settings_lib.Settings
  path: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Summary:
  """What became of a `Load`.

  Attributes:
    fields: `Loaded.summary`.
    peak_bytes: Most memory that this process has had.
  """

  fields: dict[str, Any]
  peak_bytes: int


@dataclasses.dataclass(frozen=True)
class Failure:
  """Why there is no answer; one line."""

  message: str


def main() -> None:
  """Answers until the parent is gone."""
  output = messages.begin_child()
  while True:
    try:
      request = messages.receive(sys.stdin.buffer.read)
    except EOFError:
      return
    messages.send(output, _answer(request))


def _answer(request: str | Load) -> dict[str, int] | Summary | Failure:
  try:
    return _load(request) if isinstance(request, Load) else _workloads()
  except Exception as error:
    # One graph that cannot be loaded must not end the others.
    return Failure(errors.described(error))


def _workloads() -> dict[str, int]:
  from gdp_grappler.workloads import registry
  return {name: registry.get(name).num_devices for name in registry.names()}


def _load(request: Load) -> Summary:
  from placer_model.benchmark import loading
  loaded = loading.load(request.task, request.settings)
  loading.save(request.path, loaded)
  peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
  return Summary(loaded.summary(), peak_bytes)
