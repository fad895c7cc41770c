"""The parent's side of the process that loads graphs."""

from __future__ import annotations

import pathlib
from typing import Any

from gdp_grappler.processes import worker_process
from placer_model.benchmark import loading_worker
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

# The first build of GNMT-8 takes minutes.
_LOAD_TIMEOUT_S = 1800.
# A process that has used more memory is ended, because it does not release it.
_MOST_BYTES = 2 << 30
_LOAD = f'{loading_worker.__name__}:main'


class Loader:
  """A process that loads graphs; started on demand, and again if it ended."""

  def __init__(self) -> None:
    """Starts nothing yet."""
    self._process: worker_process.WorkerProcess | None = None

  def __enter__(self) -> Loader:
    return self

  def __exit__(self, *unused_error: object) -> None:
    self.close()

  def close(self) -> None:
    """Ends the process; a further request starts another one."""
    if self._process:
      self._process.close()
      self._process = None

  def workloads(self) -> dict[str, int] | loading_worker.Failure:
    """Returns workloads with the number of accelerators in the papers."""
    return self._ask(loading_worker.LIST)

  def load(
      self, task: tasks_lib.Task, settings: settings_lib.Settings,
      path: pathlib.Path) -> loading_worker.Summary | loading_worker.Failure:
    """Writes a task's file, see `loading.save`."""
    answer = self._ask(loading_worker.Load(task, settings, path))
    if (isinstance(answer, loading_worker.Summary) and
        answer.peak_bytes > _MOST_BYTES):
      self.close()
    return answer

  def _ask(self, request: str | loading_worker.Load) -> Any:
    """Returns the answer to a request, or a `Failure`."""
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
