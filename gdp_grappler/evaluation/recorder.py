"""Writes down what a search spends and finds."""

from __future__ import annotations

import threading
import time
from typing import Callable, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.graph import op_graph


class Recorder:
  """An `evaluator.Evaluator` that passes on and remembers.

  Everything that the other evaluator has beside, such as its `cost_model`, is
  there as well; `step_times` only if it has that. Meant for one graph, since
  step times of different graphs do not compare. May be used from several
  threads at once if the other one may.

  Attributes:
    cluster: What placements index.
    evaluations: Placements priced so far.
    curve: One entry for each call that found a faster valid placement than all
      before: how many placements were priced up to it, it included; seconds
      since the recorder was made, when the call returned; and its step time in
      seconds.
    best_placement: The fastest valid placement; None if there was none.
  """

  def __init__(self, evaluator: evaluator_lib.Evaluator,
               cluster: cluster_lib.Cluster | None = None,
               clock: Callable[[], float] = time.monotonic):
    """Starts the clock.

    Args:
      evaluator: Who prices.
      cluster: What placements index; by default what the evaluator says.
      clock: Seconds since any moment.

    Raises:
      ValueError: neither the evaluator nor the caller says which cluster.
    """
    self.cluster = cluster or getattr(evaluator, 'cluster', None)
    if self.cluster is None:
      raise ValueError(f'{type(evaluator).__name__} has no `cluster`: give the '
                       'one it prices for.')
    self.evaluations = 0
    self.curve: list[tuple[int, float, float]] = []
    self.best_placement: placement_lib.Placement | None = None
    self._evaluator = evaluator
    self._clock, self._start = clock, clock()
    self._lock = threading.Lock()
    if hasattr(evaluator, 'step_times'):
      self.step_times = self._step_times

  def __getattr__(self, name):
    if name == '_evaluator':  # Not there yet, as in a copy being made.
      raise AttributeError(name)
    return getattr(self._evaluator, name)

  @property
  def seconds(self) -> float:
    """Since the recorder was made."""
    return self._clock() - self._start

  @property
  def best_step_time_s(self) -> float:
    """Of the best placement; infinite if there was none."""
    return self.curve[-1][2] if self.curve else float('inf')

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    """See `evaluator.Evaluator`."""
    result = self._evaluator.evaluate(graph, placement)
    self._record(np.array([_price(result)]), lambda _: placement)
    return result

  def evaluate_many(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray | None = None
  ) -> Sequence[evaluator_lib.Evaluation]:
    """See `evaluator.Evaluator`."""
    results = self._evaluator.evaluate_many(graph, devices, priorities)
    self._record(np.array([_price(r) for r in results]),
                 lambda k: self._placement(devices, priorities, k))
    return results

  def _step_times(self, graph, devices, priorities=None):
    """See `simulator.Simulator.step_times`."""
    seconds, peaks = self._evaluator.step_times(graph, devices, priorities)
    fits = (np.asarray(peaks) <= self.cluster.pool_bytes).all(axis=1)
    self._record(np.where(fits, seconds, np.inf),
                 lambda k: self._placement(devices, priorities, k))
    return seconds, peaks

  def _placement(self, devices, priorities, k) -> placement_lib.Placement:
    if priorities is not None:
      priorities = np.broadcast_to(priorities, np.shape(devices))[k]
    return placement_lib.Placement(devices[k], self.cluster, priorities)

  def _record(self, prices, placement_of):
    """Takes down K prices, infinite where a placement is not valid."""
    with self._lock:
      before, self.evaluations = self.evaluations, self.evaluations + len(
          prices)
      best = int(prices.argmin()) if len(prices) else None
      if best is not None and prices[best] < self.best_step_time_s:
        self.best_placement = placement_of(best)
        self.curve.append(
            (before + best + 1, self.seconds, float(prices[best])))


def _price(evaluation) -> float:
  return evaluation.step_time_s if evaluation.valid else float('inf')
