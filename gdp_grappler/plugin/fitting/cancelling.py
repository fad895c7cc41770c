"""Calls that code within them can cancel.

TensorFlow has one cancellation manager per process: to cancel one call would
also cancel the calls of other threads. Here each thread has its own manager.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Iterator

from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context as context_lib


class _Local(threading.local):
  manager: cancellation.CancellationManager | None = None


_local = _Local()


@contextlib.contextmanager
def cancellable() -> Iterator[cancellation.CancellationManager]:
  """Functions that this thread calls meanwhile end when they are told to.

  Servers run them later, and look at the manager then; so it waits for them.

  Yields:
    What tells them.
  """
  _install()
  manager = cancellation.CancellationManager()
  outer, _local.manager = _local.manager, manager
  try:
    yield manager
    context_lib.async_wait()
  finally:
    _local.manager = outer


@functools.cache
def _install() -> None:
  """Wraps what calls of functions ask, once per process."""
  stock = cancellation.context

  @functools.wraps(stock)
  def context() -> Any:
    return stock() if _local.manager is None else _local.manager

  cancellation.context = context
