"""Measures how much workers of one machine slow each other down.

Cores share a memory bus and a cache. Each worker runs the whole graph, first
while the other workers are idle, and then while all of them run it. The
slowdown is the contention that the simulator applies when several workers
compute.
"""

from __future__ import annotations

import contextlib
from typing import Any, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.evaluation.profiling import contention_worker
from gdp_grappler.evaluation.profiling import profiling_worker
from gdp_grappler.processes import messages
from gdp_grappler.processes import worker_process

_ROUNDS = 3  # Windows for each median.
_WINDOW_S = 1.5  # Seconds in which a process repeats its step.
# Time limit of the start of a process, in seconds.
_START_S = 300.
# Time limit of its steps, in seconds.
_STEPS_S = 120.


def measure(setups: Sequence[profiling_worker.Setup],
            name: str) -> tuple[float, ...]:
  """Relative slowdown of each worker's step for each other busy worker.

  Args:
    setups: [W], the whole graph on each of the workers.
    name: Name of the graph, for messages.

  Returns:
    [W] shares of the step: (together / alone - 1) / (W - 1), at least 0.

  Raises:
    MeasurementError: the graph does not run on one of the workers.
  """
  if len(setups) < 2:
    return (0.,) * len(setups)
  with contextlib.ExitStack() as stack:
    processes = []
    for _ in setups:
      processes.append(
          worker_process.WorkerProcess(f'{contention_worker.__name__}:main',
                                       keras=False))
      stack.callback(processes[-1].close)
    try:
      for process, setup in zip(processes, setups):
        process.send(setup)
      for process, setup in zip(processes, setups):
        _checked(process.receive(_START_S), setup, name)
      workers = [*zip(processes, setups)]
      alone = np.median(
          [[_clock([w], name)[0] for w in workers] for _ in range(_ROUNDS)],
          axis=0)
      together = np.median([_clock(workers, name) for _ in range(_ROUNDS)],
                           axis=0)
    except worker_process.Died as error:
      raise errors.MeasurementError(
          f'Running {name} on several workers at a time failed: {error}.'
      ) from error
  return shares(alone, together)


def shares(alone: np.ndarray | Sequence[float],
           together: np.ndarray | Sequence[float]) -> tuple[float, ...]:
  """[W], relative slowdowns.

  Args:
    alone: [W], median seconds of the step while other workers are idle.
    together: [W], median seconds of the step while all workers run.
  """
  ratio = np.asarray(together) / np.asarray(alone)
  return tuple(np.maximum((ratio - 1) / (len(ratio) - 1), 0.).tolist())


def _clock(workers: Sequence[tuple[worker_process.WorkerProcess,
                                   profiling_worker.Setup]],
           name: str) -> list[float]:
  for process, _ in workers:
    process.send(_WINDOW_S)
  return [
      _checked(process.receive(_WINDOW_S + _STEPS_S), setup, name)
      for process, setup in workers
  ]


def _checked(answer: Any, setup: profiling_worker.Setup, name: str) -> Any:
  if isinstance(answer, messages.Failure):
    raise errors.MeasurementError(
        f'{name} does not run on {setup.device}: {answer.message}. The '
        'roofline needs no profile.')
  return answer
