"""A process that holds a task's graph and forks for each of its cells.

It never imports TensorFlow and has one thread, so that forking is safe. A
forked cell starts within milliseconds, has no traces of other cells, and harms
only itself if it crashes. The process answers each `Request` with the files
that it made, because the sender may be on another machine. It is a
`job_worker`.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import select
import signal
import sys
import tempfile
import time
from typing import BinaryIO, Callable, NoReturn

from gdp_grappler import cores
from gdp_grappler import errors
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.evaluation.calibrating import machine
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.processes import messages
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import loading
from placer_model.benchmark import records
from placer_model.benchmark import settings as settings_lib

RECORD, PLAN, CHART = 'record.json', 'plan.json', 'chart.png'
ORDERED_PLAN = cell_lib.ordered_plan(pathlib.Path(PLAN)).name
_ERROR_EXIT = 70  # sysexits.h: EX_SOFTWARE.


@dataclasses.dataclass(frozen=True)
class Setup:
  """Data that all cells of a task share.

  Attributes:
    task: Content of a file of `loading.save`.
    settings: Settings of the run.
    threads: Number of simulations in parallel.
  """

  task: bytes
  settings: settings_lib.Settings
  threads: int


@dataclasses.dataclass(frozen=True)
class Run:
  """Request to run a cell; the answer has its `RECORD` and its `PLAN`.

  It also has an `ORDERED_PLAN` if control edges are predicted to pay.

  Attributes:
    placer: Name of the placer.
    key: Key of the cell, from `settings.cell_key`.
    timeout_s: Seconds after which the cell is ended.
  """

  placer: str
  key: str
  timeout_s: float

  @property
  def name(self) -> str:
    """See `jobs.Job`."""
    return self.placer

  @property
  def leaves(self) -> str:
    """Name of the file that the answer must have."""
    return RECORD


@dataclasses.dataclass(frozen=True)
class Draw:
  """Request to draw the chart of a finished cell; the answer has a `CHART`.

  Attributes:
    title: Title of the chart.
    plan: Content of the cell's `PLAN`.
    timeout_s: Seconds after which the drawing is ended.
  """

  title: str
  plan: bytes
  timeout_s: float = 300.

  @property
  def name(self) -> str:
    """See `jobs.Job`."""
    return f'the chart of {self.title}'

  @property
  def leaves(self) -> str:
    """Name of the file that the answer must have."""
    return CHART


Request = Run | Draw
# Contents of files by name.
Files = dict[str, bytes]


class CellError(errors.GdpError):
  """A cell has no result."""


def make(setup: Setup) -> Callable[[Request], Files]:
  """Returns the function that answers requests; see `job_worker`."""
  return _Holder(setup).run


class _Holder:
  """A loaded task, with everything that its cells share."""

  def __init__(self, setup: Setup) -> None:
    self._settings = setup.settings
    self._loaded = loading.parse(setup.task)
    self._simulator = simulator_lib.Simulator(self._loaded.cluster,
                                              self._loaded.cost_model,
                                              setup.threads)
    graph = self._loaded.graph
    # Cached properties are computed before the first cell, so that no placer's
    # time includes them.
    for prepared in ('topological_order', 'successors', 'edge_bytes',
                     'output_bytes', 'pinned_ops', 'num_groups', 'fingerprint'):
      getattr(graph, prepared)

  def run(self, request: Request) -> Files:
    """Runs a request in a process of its own.

    Raises:
      CellError: the request has no result.
    """
    with tempfile.TemporaryDirectory() as folder:
      left = pathlib.Path(folder)
      end, words = self._ran(request, left)
      message = _explain(end, words, request.timeout_s,
                         (left / request.leaves).exists())
      if message:
        raise CellError(message)
      return {path.name: path.read_bytes() for path in left.iterdir()}

  def _ran(self, request: Request,
           folder: pathlib.Path) -> tuple[int | None, str]:
    """Returns how the process ended, as `_wait` does, and its last line."""
    with tempfile.TemporaryFile() as words:
      holder, child = os.getpid(), os.fork()
      if not child:
        self._run_here(request, folder, words, holder)
      end = _wait(child, request.timeout_s)
      words.seek(0)
      last = words.read().decode(errors='replace').strip()
    return end, last.splitlines()[-1][:500] if last else ''

  def _run_here(self, request: Request, folder: pathlib.Path, words: BinaryIO,
                holder: int) -> NoReturn:
    """Runs a request in the forked process."""
    code = _ERROR_EXIT
    try:
      os.dup2(words.fileno(), 2)
      os.dup2(words.fileno(), 1)
      null = os.open(os.devnull, os.O_RDONLY)
      os.dup2(null, 0)
      messages.end_with_parent(holder)
      messages.volunteer_for_oom()
      # Limits the cores of all threads of a placer, not only of simulations.
      cores.keep_to(self._simulator.threads)
      if isinstance(request, Draw):
        self._draw(request, folder)
      else:
        self._measure(request, folder)
      code = 0
    except BaseException as error:
      # Any error is a result of this cell. The table's footnotes show it.
      print(errors.described(error), file=sys.stderr)
    finally:
      sys.stderr.flush()
      # Skips destructors and exit handlers of the parent's objects.
      os._exit(code)

  def _draw(self, request: Draw, folder: pathlib.Path) -> None:
    # Imported here, because few cells are drawn and the import takes a second.
    from placer_model.benchmark import gantt
    (folder / PLAN).write_bytes(request.plan)
    placement = plan_lib.load(str(folder / PLAN), self._loaded.graph,
                              self._loaded.cluster)
    schedule = self._simulator.schedule(
        self._loaded.graph, dataclasses.replace(placement, priorities=None))
    gantt.draw(folder / CHART, request.title, self._loaded.graph, placement,
               schedule)

  def _measure(self, request: Run, folder: pathlib.Path) -> None:
    try:
      result = cell_lib.run(self._loaded, self._settings, request.placer,
                            self._simulator, folder / PLAN)
    except errors.InfeasiblePlacementError as error:
      result = {
          'status': cell_lib.INFEASIBLE, 'message': errors.one_line(error)
      }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    records.write(
        folder / RECORD, request.key, self._loaded.task.name, request.placer, {
            **result, 'settings': self._settings.to_json(),
            'processor': machine.cpu_model(), 'cores': self._simulator.threads,
            'process_peak_bytes': peak
        })


def _wait(child: int, timeout_s: float) -> int | None:
  """Returns the exit code of a child, or -N after signal N.

  None means that the child was killed, because of the time limit or because
  this process's parent has ended.
  """
  handle = os.pidfd_open(child)
  try:
    deadline = time.monotonic() + timeout_s
    ready = select.select([handle, sys.stdin], [], [],
                          max(0., deadline - time.monotonic()))[0]
    if handle not in ready:
      os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
  finally:
    os.close(handle)
  return os.waitstatus_to_exitcode(status) if handle in ready else None


def _explain(end: int | None, words: str, timeout_s: float,
             has_result: bool) -> str:
  """Returns why a cell has no result, in one line; '' if it has one."""
  if end is None:
    return f'no result within {timeout_s:g} s; the cell was ended'
  if end == -signal.SIGKILL:
    return ('the process was killed, by the system for want of memory or by '
            'somebody')
  if end < 0:
    return f'crashed with {signal.Signals(-end).name}' + (f': {words}'
                                                          if words else '')
  if end:
    return words or f'ended with exit code {end}'
  return '' if has_result else 'ended without a result'
