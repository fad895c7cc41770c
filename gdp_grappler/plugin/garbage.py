"""Keeps Python's garbage collector from scanning the user's objects.

Reading a graph creates many Python objects per op. So many new objects trigger
a collection that scans all objects of the program, and this would take a
considerable part of the pass. The objects of the pass itself are in no cycles.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from typing import Iterator


class _Pauses:
  """Counts pauses on all threads. The child of a fork begins without any."""

  def __init__(self) -> None:
    self._was_on = False
    self._reset()
    os.register_at_fork(after_in_child=self._resume)

  def begin(self) -> None:
    with self._lock:
      if not self._count:
        self._was_on = gc.isenabled()
        gc.disable()
      self._count += 1

  def end(self) -> None:
    if self._count == 1 and self._was_on:
      # Otherwise the new objects would trigger a full collection.
      # Finalizers may call this method, so no lock may be held here.
      gc.collect(0)
    with self._lock:
      self._count -= 1
      if not self._count and self._was_on:
        gc.enable()

  def _reset(self) -> None:
    self._lock = threading.Lock()
    self._count = 0

  def _resume(self) -> None:
    # After a fork the threads that began a pause do not exist.
    if self._count and self._was_on:
      gc.enable()
    self._reset()


_pauses = _Pauses()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
  """Pauses garbage collection in the context, if it was on."""
  _pauses.begin()
  try:
    yield
  finally:
    _pauses.end()
