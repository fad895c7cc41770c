"""The processes of a run, as their parent sees them."""

from __future__ import annotations

import pathlib
import selectors
import time
from typing import Any, Generic, Iterator, Sequence, TypeVar

from gdp_grappler.processes import worker_process
from placer_model.benchmark import cell_worker
from placer_model.benchmark import loading_worker
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

# GNMT-8 takes minutes to build the first time.
_LOAD_TIMEOUT_S = 1800.
# A process that has had more keeps it; a new one starts small.
_MOST_BYTES = 2 << 30
# A cell's own limit comes first.
_GRACE_S = 60.
_TICK_S = .5
_RUN_CELLS = f'{cell_worker.__name__}:main'
_LOAD = f'{loading_worker.__name__}:main'
_Cell = TypeVar('_Cell', bound=cell_worker.Request)


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


class Lanes(Generic[_Cell]):
  """Processes that run the cells of one task, one at a time each."""

  def __init__(self, setup: cell_worker.Setup, count: int,
               function: str = _RUN_CELLS) -> None:
    """Starts up to `count` of them, when there are cells.

    Args:
      setup: For each of them.
      count: Most of them.
      function: What they run.
    """
    self._setup, self._count, self._function = setup, count, function
    self._idle: list[worker_process.WorkerProcess] = []
    self._busy: dict[worker_process.WorkerProcess, tuple[_Cell, float]] = {}

  def __enter__(self) -> Lanes[_Cell]:
    return self

  def __exit__(self, *unused_error: object) -> None:
    for process in (*self._idle, *self._busy):
      process.close()
    self._idle, self._busy = [], {}

  def run(self, cells: Sequence[_Cell]) -> Iterator[tuple[_Cell, str, float]]:
    """Runs all cells; those that fail do not stop the others.

    Args:
      cells: In the order in which they start.

    Yields:
      A cell that has ended, '' or why it failed, and the seconds that it took.
    """
    waiting = list(reversed(cells))
    while waiting or self._busy:
      while waiting and len(self._busy) < self._count:
        self._start(waiting.pop())
      yield from self._ended()

  def _start(self, cell: _Cell) -> None:
    process = self._idle.pop() if self._idle else self._new()
    self._busy[process] = cell, time.monotonic()
    try:
      process.send(cell)
    except worker_process.Died:
      return  # `_ended` finds out.

  def _new(self) -> worker_process.WorkerProcess:
    process = worker_process.WorkerProcess(self._function)
    process.send(self._setup)
    return process

  def _ended(self) -> Iterator[tuple[_Cell, str, float]]:
    with selectors.DefaultSelector() as selector:
      for process in self._busy:
        selector.register(process, selectors.EVENT_READ, process)
      ready = [key.data for key, _ in selector.select(_TICK_S)]
    now = time.monotonic()
    late = [
        process for process, (cell, start) in self._busy.items()
        if now > start + cell.timeout_s + _GRACE_S
    ]
    for process in dict.fromkeys((*ready, *late)):
      cell, start = self._busy.pop(process)
      try:
        message = process.receive(_GRACE_S if process in ready else 0.)
        self._idle.append(process)
      except worker_process.Died as error:
        message = str(error)
        process.close()
      yield cell, message, now - start


def setup(path: pathlib.Path, settings: settings_lib.Settings,
          cores: int) -> cell_worker.Setup:
  """The setup of a task's lanes, which share the cores."""
  return cell_worker.Setup(path, settings, max(1, cores // settings.jobs))
