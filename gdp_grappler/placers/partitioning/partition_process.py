"""How placers run libraries that print, crash or keep global state."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Any, Callable, Iterator

from gdp_grappler import errors
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process


@contextlib.contextmanager
def stdout_dropped() -> Iterator[None]:
  """Drops what native code prints to standard output."""
  native = ctypes.CDLL(None)
  sys.stdout.flush()
  native.fflush(None)
  real = os.dup(1)
  nowhere = os.open(os.devnull, os.O_WRONLY)
  os.dup2(nowhere, 1)
  try:
    yield
  finally:
    native.fflush(None)
    os.dup2(real, 1)
    os.close(real)
    os.close(nowhere)


def call_worker(module: str, request: Any, timeout_s: float,
                environment: dict[str, str] | None = None) -> Any:
  """What a module answers to a request in a process of its own.

  Libraries with global state or threads of their own, that print, or that may
  crash, do no harm there.

  Args:
    module: Full name; run with `serve`.
    request: Anything that can be pickled.
    timeout_s: How long it may take.
    environment: Variables beside those of this process.

  Raises:
    GdpError: the process died or took too long, or the library refused.
  """
  worker = worker_process.WorkerProcess(module, environment=environment)
  name = module.rpartition('.')[2].removesuffix('_worker')
  try:
    worker.send(request)
    answer, problem = worker.receive(timeout_s)
  except worker_process.Died as error:
    raise errors.GdpError(
        f'The placer "{name}" failed: {error}. Use another placer, such as '
        '"metis".') from error
  finally:
    worker.close()
  if problem:
    raise errors.GdpError(f'The placer "{name}" failed: {problem}.')
  return answer


def serve(answer: Callable[[Any], Any]) -> None:
  """The other side of `call_worker`: answers one request."""
  stream = messages.answers()
  messages.end_with_parent()
  request = messages.receive(sys.stdin.buffer.read)
  try:
    messages.send(stream, (answer(request), ''))
  except Exception as error:
    # Whatever the library raises is told by the caller.
    messages.send(stream, (None, f'{type(error).__name__}: {error}'))
