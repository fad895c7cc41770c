"""The process behind `contention`: runs one graph on one device on demand.

The process answers a `profiling_worker.Setup` with None when the graph has
warmed up, or with a `Failure`. Every further message is a number of seconds.
The process runs steps for this time and answers with their median seconds.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import Any, Callable

import numpy as np

from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.processes import messages

_WARMUP = 5  # Steps before the first window.


def main() -> None:
  """Serves until it is killed or its parent ends."""
  answers = messages.begin_child()
  request = functools.partial(messages.receive, sys.stdin.buffer.read)
  setup = request()
  import tensorflow as tf
  try:
    with profiling_worker.session(tf, setup) as step:
      for _ in range(_WARMUP):
        step()
      messages.send(answers, None)
      while True:
        messages.send(answers, _median_s(step, request()))
  except EOFError:
    return
  except (tf.errors.OpError, ValueError) as error:
    messages.send(answers, messages.Failure(messages.cause(error)))


def _median_s(step: Callable[[], Any], window_s: float) -> float:
  """Median seconds of the steps that begin within the window, at least one."""
  seconds: list[float] = []
  end = time.perf_counter() + window_s
  while not seconds or time.perf_counter() < end:
    start = time.perf_counter()
    step()
    seconds.append(time.perf_counter() - start)
  return float(np.median(seconds))
