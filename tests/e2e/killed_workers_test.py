"""Whoever kills workers while placements are measured: nothing is lost."""

import math
import os
import pathlib
import random
import signal
import tempfile
import threading
from typing import AbstractSet, Sequence

import numpy as np
import pytest

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.measuring import local_workers
from gdp_grappler.evaluation.measuring import measurer as measurer_lib
from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph.sources import sources
from helpers import processes
from helpers import warm

pytestmark = pytest.mark.e2e

_STEP = pathlib.Path(__file__).parents[1] / 'testdata' / 'dense_train_step.pb'
_LEAST_PLACEMENTS = 8


class _Killer(threading.Thread):
  """Kills any worker: one at work, one that imports TensorFlow, one at work.

  Attributes:
    kills: Number of workers that it has killed.
    seen: Ids of all workers it has seen.
  """

  def __init__(self, results: Sequence[object]):
    """Takes the list of the results so far."""
    super().__init__(daemon=True)
    self._results = results
    self._random = random.Random(0)
    self._before = set(processes.children(os.getpid()))
    self.kills, self.seen = 0, set[int]()

  def run(self) -> None:
    self._wait_for_work()
    # Only the workers that are killed while they start import TensorFlow, which
    # takes seconds. The others are forks.
    with warm.cold():
      self._kill(self._busy())
      starting = self._busy(set(self.seen))
    self._kill(starting)
    self._wait_for_work()
    self._kill(self._busy())

  def _kill(self, worker: int) -> None:
    os.kill(worker, signal.SIGKILL)
    self.kills += 1

  def _busy(self, but: AbstractSet[int] = frozenset()) -> int:
    """Returns a worker that has worked for a moment, at random."""
    while True:
      workers = [p for p in self._workers() if p not in but]
      if workers and self._works_on(worker := self._random.choice(workers)):
        return worker

  def _workers(self) -> list[int]:
    found = [
        p for p in processes.children(os.getpid())
        if p not in self._before and processes.runs(p)
    ]
    self.seen.update(found)
    return found

  def _works_on(self, worker: int) -> bool:
    """Waits until it has used some more CPU time; False if it has ended."""
    end_s = processes.cpu_s(worker) + self._random.uniform(0, 1.)
    processes.wait_until(
        lambda: not processes.runs(worker) or processes.cpu_s(worker) >= end_s)
    return processes.runs(worker)

  def _wait_for_work(self) -> None:
    """Until the same client and two servers have measured three placements."""
    workers, measured = [], 0

    def at_work() -> bool:
      nonlocal workers, measured
      if len(workers) != 3 or self._workers() != workers:
        workers, measured = self._workers(), len(self._results)
      return len(self._results) >= measured + 3

    processes.wait_until(at_work)


@pytest.mark.timeout(600)
def test_nothing_is_lost(tmp_path, monkeypatch):
  monkeypatch.setenv('TMPDIR', str(tmp_path))
  monkeypatch.setattr(tempfile, 'tempdir', None)
  source = sources.load(str(_STEP))
  graph = graph_def_io.read(source)
  cluster = local_workers.cluster(2)
  allowed = constraints.allowed_devices(graph, cluster)
  generator = np.random.default_rng(0)
  results: list[evaluator_lib.Evaluation] = []
  killer = _Killer(results)
  with measurer_lib.Measurer(source, cluster, local_workers=2, steps=3,
                             warmup=1, budget_s=.2) as measurer:
    killer.start()
    while killer.is_alive() or len(results) < _LEAST_PLACEMENTS:
      row = [generator.choice(np.flatnonzero(a)) for a in allowed]
      results.append(
          measurer.evaluate(
              graph, placement_lib.from_groups(graph, np.array(row), cluster)))
    killer.join()
  assert killer.kills == 3 and len(results) >= _LEAST_PLACEMENTS
  for result in results:
    assert result.valid, result.violations
    assert 0 < result.step_time_s < math.inf
  # A process that forks may have been seen before it was known as one.
  assert processes.ended(p for p in killer.seen if not warm.forks(p, ''))
  assert not list(tmp_path.iterdir())
