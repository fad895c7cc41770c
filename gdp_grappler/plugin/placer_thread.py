"""The one thread that places graphs. The pass skips graphs of this thread."""

from __future__ import annotations

from concurrent import futures
import os
import queue
import threading
import time
from typing import Any, Callable, TypeVar

from gdp_grappler.placers.policy import eager_thread
from gdp_grappler.plugin import interrupts

_T = TypeVar('_T')
# The future of a result, and the function that computes the result.
_Job = tuple[futures.Future[Any], Callable[[], Any]]

# Errors that `futures.wait` itself may raise.
_OF_WAITING = (MemoryError, OverflowError, RecursionError)


class StillBusyError(Exception):
  """The thread still runs a job that exceeded its time limit."""


class PlacerThread:
  """Runs jobs one after the other on a daemon thread.

  The thread starts with the first job. The child of a fork starts its own
  thread.
  """

  def __init__(self) -> None:
    self._reset()
    os.register_at_fork(after_in_child=self._reset)

  def _reset(self) -> None:
    self._lock = threading.Lock()
    self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
    self._thread: threading.Thread | None = None
    self._late: futures.Future[Any] | None = None

  def run(self, job: Callable[[], _T], timeout_s: float,
          excused_s: Callable[[], float] = lambda: 0.) -> _T:
    """Runs a job on the thread, and returns its result.

    Args:
      job: Function to run. If it raises an error, this method raises it.
      timeout_s: Time limit in seconds, including the time in the queue.
      excused_s: Returns the seconds that this process has spent so far on work
        that no time limit includes, such as loading of networks.

    Raises:
      TimeoutError: the job exceeded its time limit. A job that has begun goes
        on.
      StillBusyError: an earlier job that exceeded its time limit still runs.
      Interruption: an exception of the program, such as one that a signal
        handler raised, ended the wait. A job that has begun goes on.
    """
    with self._lock:
      if self._late is not None and not self._late.done():
        raise StillBusyError
      self._start()
    future: futures.Future[_T] = futures.Future()
    end = time.monotonic() + timeout_s - excused_s()
    self._jobs.put((future, job))
    while not future.done():
      left_s = end + excused_s() - time.monotonic()
      if left_s <= 0:
        if not future.cancel():
          self._late = future
        raise TimeoutError
      try:
        # Unlike `result`, `wait` never raises an error of the job.
        futures.wait((future,), left_s)
      except BaseException as error:
        future.cancel()
        if isinstance(error, _OF_WAITING):
          raise
        raise interrupts.Interruption(error) from None
    return future.result()

  def _start(self) -> None:
    if self._thread is None:
      self._thread = threading.Thread(target=_work, args=(self._jobs,),
                                      name='gdp_placer', daemon=True)
      self._thread.start()


def _work(jobs: queue.SimpleQueue[_Job]) -> None:
  with eager_thread.as_placer_code():
    while True:
      future, job = jobs.get()
      if not future.set_running_or_notify_cancel():
        continue
      try:
        future.set_result(job())
      except BaseException as error:
        future.set_exception(error)
      del future, job
