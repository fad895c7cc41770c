"""The process that holds a task's graph and forks for each of its cells.

It never imports TensorFlow and has one thread, so that forking is safe: a cell
starts within milliseconds, in a process that no other cell has left traces in,
and takes nothing down but itself. Answers each `Request` with '' or why there
is no result; the result itself is a file. It ends with its parent; see
`messages`.
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
from typing import BinaryIO, NoReturn

from gdp_grappler import errors
from gdp_grappler.cluster import plan as plan_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.processes import messages
from placer_model.benchmark import cell as cell_lib
from placer_model.benchmark import loading
from placer_model.benchmark import records
from placer_model.benchmark import settings as settings_lib

_ERROR_EXIT = 70  # sysexits.h: EX_SOFTWARE.


@dataclasses.dataclass(frozen=True)
class Setup:
  """The first message; it has no answer.

  Attributes:
    path: File of `loading.save`.
    settings: Of the run.
    threads: For simulations side by side.
  """

  path: pathlib.Path
  settings: settings_lib.Settings
  threads: int


@dataclasses.dataclass(frozen=True)
class Run:
  """A cell.

  Attributes:
    placer: Name.
    key: Of `settings.cell_key`.
    result: File for the record.
    plan: File for the placement.
    timeout_s: After so many seconds the cell is ended.
  """

  placer: str
  key: str
  result: pathlib.Path
  plan: pathlib.Path
  timeout_s: float


@dataclasses.dataclass(frozen=True)
class Draw:
  """The chart of a cell that has ended.

  Attributes:
    title: Over it.
    plan: File of the placement.
    result: File for the picture.
    timeout_s: After so many seconds the drawing is ended.
  """

  title: str
  plan: pathlib.Path
  result: pathlib.Path
  timeout_s: float = 300.


Request = Run | Draw


def main() -> None:
  """Answers until the parent is gone."""
  output = messages.answers()
  try:
    setup = messages.receive(_read)
    holder = _Holder(setup)
    while True:
      request = messages.receive(_read)
      messages.send(output, holder.run(request))
  except EOFError:
    return


class _Holder:
  """A loaded task with all that its cells have in common."""

  def __init__(self, setup: Setup) -> None:
    self._settings = setup.settings
    self._loaded = loading.read(setup.path)
    self._simulator = simulator_lib.Simulator(self._loaded.cluster,
                                              self._loaded.cost_model,
                                              setup.threads)
    graph = self._loaded.graph
    # What the graph remembers once asked is there before the first cell, so
    # that no placer pays for others.
    for prepared in ('topological_order', 'successors', 'edge_bytes',
                     'output_bytes', 'num_groups', 'fingerprint'):
      getattr(graph, prepared)

  def run(self, request: Request) -> str:
    """Runs it in a process of its own; '' or why it failed."""
    with tempfile.TemporaryFile() as words:
      holder, child = os.getpid(), os.fork()
      if not child:
        self._run_here(request, words, holder)
      end = _wait(child, request.timeout_s)
      words.seek(0)
      last = words.read().decode(errors='replace').strip()
    return _explain(end, last.splitlines()[-1][:500] if last else '', request)

  def _run_here(self, request: Request, words: BinaryIO,
                holder: int) -> NoReturn:
    """In the child."""
    code = _ERROR_EXIT
    try:
      os.dup2(words.fileno(), 2)
      os.dup2(words.fileno(), 1)
      null = os.open(os.devnull, os.O_RDONLY)
      os.dup2(null, 0)
      messages.end_with_parent(holder)
      messages.volunteer_for_oom()
      if isinstance(request, Draw):
        self._draw(request)
      else:
        self._measure(request)
      code = 0
    except errors.GdpError as error:
      print(' '.join(str(error).split()), file=sys.stderr)
    except BaseException as error:
      # Whatever it is, it is this cell's; the table's footnotes show it.
      print(f'{type(error).__name__}: {" ".join(str(error).split())}',
            file=sys.stderr)
    finally:
      sys.stderr.flush()
      # Neither destructors nor exit handlers of the parent's objects.
      os._exit(code)

  def _draw(self, request: Draw) -> None:
    # Drawing is for one process in ten; it takes a second to import.
    from placer_model.benchmark import gantt
    placement = plan_lib.load(str(request.plan), self._loaded.graph,
                              self._loaded.cluster)
    schedule = self._simulator.schedule(
        self._loaded.graph, dataclasses.replace(placement, priorities=None))
    gantt.draw(request.result, request.title, self._loaded.graph, placement,
               schedule)

  def _measure(self, request: Run) -> None:
    try:
      result = cell_lib.run(self._loaded, self._settings, request.placer,
                            self._simulator, request.plan)
    except errors.InfeasiblePlacementError as error:
      result = {
          'status': cell_lib.INFEASIBLE,
          'message': ' '.join(str(error).split())
      }
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    records.write(request.result, request.key, self._loaded.task.name,
                  request.placer, {
                      **result, 'settings': self._settings.to_json(),
                      'process_peak_bytes': peak
                  })


def _read(size: int) -> bytes:
  """Unbuffered, so that `select` tells whether there is more."""
  data = b''
  while len(data) < size:
    part = os.read(sys.stdin.fileno(), size - len(data))
    if not part:
      break
    data += part
  return data


def _wait(child: int, timeout_s: float) -> int | None:
  """The exit code of a child, -N after signal N; None if it had to be killed.

  A parent that is gone ends the child at once.
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


def _explain(end: int | None, words: str, request: Request) -> str:
  """'' for a cell that has its result, else one line."""
  if end is None:
    return f'no result within {request.timeout_s:g} s; the cell was ended'
  if end == -signal.SIGKILL:
    return ('the process was killed, by the system for want of memory or by '
            'somebody')
  if end < 0:
    return f'crashed with {signal.Signals(-end).name}' + (f': {words}'
                                                          if words else '')
  if end:
    return words or f'ended with exit code {end}'
  return '' if request.result.exists() else 'ended without a result'
