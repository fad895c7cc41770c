"""Records the prices of a search: how many, when, and the best placement."""

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

  Meant for one graph, since step times of different graphs do not compare. May
  be used from several threads at once if the other evaluator may.

  Attributes:
    cluster: What placements index.
    simulated: Whether the other one computes its prices.
    evaluations: Placements priced so far.
    curve: One entry for each call that found a faster valid placement than all
      calls before: placements priced so far, this call included; seconds from
      the start of the recorder to the end of the call; step time in seconds.
    best_placement: The fastest valid placement; None if there was none.
  """

  def __init__(self, evaluator: evaluator_lib.Evaluator,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Starts the clock.

    Args:
      evaluator: Prices the placements.
      clock: Seconds since any moment.
    """
    super().__init__(evaluator)
    self.evaluations = 0
    self.curve: list[tuple[int, float, float]] = []
    self.best_placement: placement_lib.Placement | None = None
    self._clock, self._start = clock, clock()
    self._lock = threading.Lock()

  @property
  def seconds(self) -> float:
    """Since the recorder was made."""
    return self._clock() - self._start

  @property
  def best_step_time_s(self) -> float:
    """Of the best placement; infinite if there was none."""
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
    """See `evaluator.Evaluator`; it is only counted.

    It is no step until control edges are found for it.
    """
    prices = self._evaluator.price_in_order(graph, devices, priorities,
                                            ceiling_s)
    with self._lock:
      self.evaluations += len(prices)
    return prices

  def price_groups(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      ceiling_s: evaluator_lib.Ceiling | None = math.inf,
      priorities: np.ndarray | None = None) -> evaluator_lib.Prices:
    """See `evaluator.Evaluator`; best is what is within its ceiling.

    With priorities it is only counted: searches compare what no runtime does
    by itself, and it is no step until control edges are found for it.
    """
    prices = self._evaluator.price_groups(graph, devices, ceiling_s, priorities)
    if priorities is not None:
      with self._lock:
        self.evaluations += len(prices)
      return prices
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
