"""The process with TensorFlow: lists workloads and loads graphs.

It answers `LIST` with a dict from workload to the number of accelerators in the
papers, and a `Load` with a `Summary` or a `Failure`; see `messages`. It ends
with its parent.
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
  """Request to load a task.

  Attributes:
    task: The task.
    settings: Settings of the run.
    path: File to write, for `loading.parse`.
  """

  task: tasks_lib.Task
  settings: settings_lib.Settings
  path: pathlib.Path


@dataclasses.dataclass(frozen=True)
class Summary:
  """Answer to a `Load` that succeeded.

  Attributes:
    fields: Result of `Loaded.summary`.
    peak_bytes: Largest memory that this process has used.
  """

  fields: dict[str, Any]
  peak_bytes: int


@dataclasses.dataclass(frozen=True)
class Failure:
  """Reason why a request failed, in one line."""

  message: str


def main() -> None:
  """Answers requests until the parent has ended."""
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
    # A graph that cannot be loaded must not end the run.
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
