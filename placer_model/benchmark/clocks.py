"""Clocks that measure the seconds of a search."""

from __future__ import annotations

import resource
import time
from typing import Callable, Mapping

WALL, PROCESSOR = 'wall', 'processor'


def processor_s() -> float:
  """Processor seconds of this process and of its children that ended."""
  children = resource.getrusage(resource.RUSAGE_CHILDREN)
  return time.process_time() + children.ru_utime + children.ru_stime


# Each returns seconds since a fixed moment.
CLOCKS: Mapping[str, Callable[[], float]] = {
    WALL: time.monotonic,
    PROCESSOR: processor_s,
}
