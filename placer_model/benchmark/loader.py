"""The process that loads, as its parent sees it."""

from __future__ import annotations

import pathlib
from typing import Any

from gdp_grappler.processes import worker_process
from placer_model.benchmark import loading_worker
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

# GNMT-8 takes minutes to build the first time.
_LOAD_TIMEOUT_S = 1800.
# A process that has had more keeps it; a new one starts small.
_MOST_BYTES = 2 << 30
_LOAD = f'{loading_worker.__name__}:main'


class Loader:
  """A process that loads; started when needed, and again when it ended."""

  def __init__(self) -> None:
    """Starts nothing yet."""
    self._process: worker_process.WorkerProcess | None = None

  def __enter__(self) -> Loader:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  def close(self) -> None:
    """Ends the process; another request starts another one."""
    if self._process:
      self._process.close()
      self._process = None

  def workloads(self) -> dict[str, int] | loading_worker.Failure:
    """Names of the workloads, and the accelerators that the papers give."""
    return self._ask(loading_worker.LIST)

  def load(
      self, task: tasks_lib.Task, settings: settings_lib.Settings,
      path: pathlib.Path) -> loading_worker.Summary | loading_worker.Failure:
    """Writes a task's file; see `loading.save`."""
    answer = self._ask(loading_worker.Load(task, settings, path))
    if (isinstance(answer, loading_worker.Summary) and
        answer.peak_bytes > _MOST_BYTES):
      self.close()
    return answer

  def _ask(self, request: str | loading_worker.Load) -> Any:
    """What belongs to the request, or a `Failure`."""
    try:
      if self._process is None:
        self._process = worker_process.WorkerProcess(_LOAD)
      self._process.send(request)
      return self._process.receive(_LOAD_TIMEOUT_S)
    except worker_process.Died as error:
      self.close()
      return loading_worker.Failure(str(error))
    except BaseException:
      self.close()
      raise
