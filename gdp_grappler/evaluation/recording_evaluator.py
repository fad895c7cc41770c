"""An evaluator that records a search: the number of prices, and the best."""

from __future__ import annotations

import math
import threading
import time
from typing import Callable

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.graph import op_graph


class Recorder(evaluator_lib.Wrapper):
  """Passes on the prices of another evaluator, and records them.

  An object serves one graph, because step times of different graphs cannot be
  compared. It may be used from several threads at once if the wrapped
  evaluator may.

  Attributes:
    cluster: Cluster whose devices placements index.
    simulated: Whether the wrapped evaluator computes its prices.
    evaluations: Number of placements priced so far. Prices of `price_closely`
      do not count.
    curve: One entry for each call that found a faster valid placement than all
      calls before. An entry has the number of placements priced up to this
      placement, the seconds from the start of the recorder to the end of the
      call, and the step time in seconds.
    best_placement: The fastest valid placement; None if there was none.
  """

  def __init__(self, evaluator: evaluator_lib.Evaluator,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Starts the clock.

    Args:
      evaluator: Evaluator that prices the placements.
      clock: Function that returns seconds since any fixed moment.
    """
    super().__init__(evaluator)
    self.evaluations = 0
    self.curve: list[tuple[int, float, float]] = []
    self.best_placement: placement_lib.Placement | None = None
    self._clock, self._start = clock, clock()
    self._lock = threading.Lock()

  @property
  def seconds(self) -> float:
    """Seconds since the recorder was made."""
    return self._clock() - self._start

  @property
  def best_step_time_s(self) -> float:
    """Step time of the best placement; infinite if there was none."""
    return self.curve[-1][2] if self.curve else float('inf')

  def price_closely(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`."""
    return self._evaluator.price_closely(graph, devices, priorities)

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator_lib.Evaluation:
    """See `evaluator.Evaluator`."""
    result = self._evaluator.evaluate(graph, placement)
    prices = evaluator_lib.Prices.from_evaluations([result],
                                                   self.cluster.pool_bytes)
    self._record(prices, lambda _: placement)
    return result

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`."""

    def placement(k: int) -> placement_lib.Placement:
      order = priorities
      if order is not None:
        order = np.broadcast_to(order, np.shape(devices))[k]
      return placement_lib.Placement(devices[k], self.cluster, order)

    prices = self._evaluator.price(graph, devices, priorities)
    self._record(prices, placement)
    return prices

  def price_in_order(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray,
      ceiling_s: evaluator_lib.Ceiling = math.inf) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`; the prices count, but none becomes the best.

    Such a price belongs to no real step until control edges are found.
    """
    prices = self._evaluator.price_in_order(graph, devices, priorities,
                                            ceiling_s)
    with self._lock:
      self.evaluations += len(prices)
    return prices

  def price_groups(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      ceiling_s: evaluator_lib.Ceiling | None = math.inf
  ) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`."""
    prices = self._evaluator.price_groups(graph, devices, ceiling_s)
    self._record(
        prices, lambda k: placement_lib.from_groups(graph,
                                                    np.asarray(devices)[k], self
                                                    .cluster))
    return prices

  def _record(self, prices: evaluator_lib.Prices,
              placement: Callable[[int], placement_lib.Placement]) -> None:
    with self._lock:
      before = self.evaluations
      self.evaluations += len(prices)
      if not len(prices):
        return
      best = prices.best()
      step_time_s = float(prices.valid_seconds[best])
      if step_time_s < self.best_step_time_s:
        self.best_placement = placement(best)
        self.curve.append((before + best + 1, self.seconds, step_time_s))
