"""The interface of evaluators, and the prices that they return."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import arguments
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.graph import op_graph

# See `Prices.keys`.
Key = tuple[bool, bool, int, float]


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """The price of one placement, and the rules that it breaks.

  Attributes:
    step_time_s: Seconds of one step; infinite if the step cannot run.
    peak_bytes: [P], highest use of each memory pool of the cluster.
    violations: Reasons why the placement is invalid; empty if it is valid.
    simulated: False if the step was measured.
    spread_s: Interquartile range of the measured steps; 0 if simulated.
  """

  step_time_s: float
  peak_bytes: tuple[int, ...]
  violations: tuple[placement_lib.Violation, ...]
  simulated: bool
  spread_s: float = 0.

  @classmethod
  def broken(cls, violations: Sequence[placement_lib.Violation],
             cluster: cluster_lib.Cluster, simulated: bool) -> Evaluation:
    """The price of a placement that cannot run."""
    return cls(math.inf, (0,) * len(cluster.pool_bytes), tuple(violations),
               simulated)

  @property
  def valid(self) -> bool:
    """Whether the placement breaks no rule and fits into memory."""
    return not self.violations


@dataclasses.dataclass(frozen=True, eq=False)
class Prices:
  """The prices of K placements on P memory pools.

  Attributes:
    seconds: float64 [K], seconds of one step; infinite if it cannot run.
    peak_bytes: int64 [K, P], highest use of each memory pool.
    overflow_bytes: int64 [K], bytes by which the placement exceeds memory
      pools, summed over the pools; 0 if a measured step ran nevertheless.
    valid: bool [K], whether the placement runs and fits into memory.
  """

  seconds: np.ndarray
  peak_bytes: np.ndarray
  overflow_bytes: np.ndarray
  valid: np.ndarray

  @classmethod
  def from_peaks(cls, seconds: np.ndarray, peak_bytes: np.ndarray,
                 pool_bytes: np.ndarray) -> Prices:
    """Prices whose `valid` follows from the steps and the memory.

    Args:
      seconds: float64 [K], seconds of one step.
      peak_bytes: int64 [K, P], highest use of each memory pool.
      pool_bytes: int [P], sizes of the memory pools.
    """
    overflow = np.maximum(peak_bytes - pool_bytes, 0).sum(axis=1)
    return cls(seconds, peak_bytes, overflow,
               np.isfinite(seconds) & (overflow == 0))

  @classmethod
  def from_evaluations(cls, evaluations: Sequence[Evaluation],
                       pool_bytes: np.ndarray) -> Prices:
    """Prices whose `valid` is that of the evaluations.

    Args:
      evaluations: [K]
      pool_bytes: int [P], sizes of the memory pools.
    """
    shape = len(evaluations), len(pool_bytes)
    peaks = np.array([e.peak_bytes for e in evaluations],
                     np.int64).reshape(shape)
    valid = np.array([e.valid for e in evaluations], bool)
    overflow = np.maximum(peaks - pool_bytes, 0).sum(axis=1)
    return cls(np.array([e.step_time_s for e in evaluations], np.float64),
               peaks, np.where(valid, 0, overflow), valid)

  def __len__(self) -> int:
    return len(self.seconds)

  def __getitem__(self, rows: np.ndarray) -> Prices:
    """The prices of some placements, by an int or bool index array."""
    return Prices(*(column[rows] for column in self._columns))

  def followed_by(self, others: Prices) -> Prices:
    """These prices, followed by the other prices."""
    return Prices(*map(np.concatenate, zip(self._columns, others._columns)))

  @property
  def valid_seconds(self) -> np.ndarray:
    """float64 [K], `seconds`, but infinite where a placement is not valid."""
    return np.where(self.valid, self.seconds, np.inf)

  def keys(self) -> list[Key]:
    """[K], sort keys that compare placements of one graph and cluster.

    The smallest key belongs to the best placement. Valid placements come
    first. Placements that exceed a memory follow, the smallest overflow first,
    and placements that cannot run come last. At ties the shorter step wins.
    """
    return list(
        zip((~self.valid).tolist(),
            np.isinf(self.seconds).tolist(), self.overflow_bytes.tolist(),
            self.seconds.tolist()))

  def ranking(self) -> list[int]:
    """[K], indices from the best to the worst; equals keep their order."""
    keys = self.keys()
    return sorted(range(len(keys)), key=keys.__getitem__)

  def best(self) -> int:
    """Index of the best placement, the first one of equals.

    Raises:
      ValueError: there are no placements.
    """
    keys = self.keys()
    return keys.index(min(keys))

  @property
  def _columns(self) -> tuple[np.ndarray, ...]:
    return self.seconds, self.peak_bytes, self.overflow_bytes, self.valid


# Seconds of a step: float for all placements, or float64 [K].
Ceiling = float | np.ndarray


class Evaluator(Protocol):
  """Prices placements of graphs on one cluster.

  Attributes:
    cluster: Cluster whose devices placements index.
    simulated: True if prices are computed, so that a search can afford
      thousands. False if steps run, so that a price takes their time.
  """

  cluster: cluster_lib.Cluster
  simulated: bool

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N, D], seconds of each op on each device.

    Simulated prices use these seconds. If whole steps are measured, the seconds
    are estimates.
    """

  def costs(self, graph: op_graph.OpGraph) -> cost_model.CostModel:
    """The cost model of this graph's kernels and of the host.

    By default it has `op_seconds` and one kernel launch for each execution.
    """
    return fixed_costs.FixedCostModel(self.op_seconds(graph))

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> Evaluation:
    """Prices one placement, in the order of its priorities if it has any."""

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> Prices:
    """Prices K placements, by default one after the other by `evaluate`.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: Priorities of waiting ops: float [K, N], or [N] for all
        placements alike, or None for first in, first out.

    Raises:
      ValueError: an array does not fit the graph, or a priority is NaN.
    """
    devices = arguments.checked_devices(graph, devices, 2)
    priorities = arguments.checked_priorities(graph, priorities, devices.shape)
    return Prices.from_evaluations([
        self.evaluate(graph, placement) for placement in placement_lib.of_rows(
            devices, self.cluster, priorities)
    ], self.cluster.pool_bytes)

  def price_in_order(self, graph: op_graph.OpGraph, devices: np.ndarray,
                     priorities: np.ndarray,
                     ceiling_s: Ceiling = math.inf) -> Prices:
    """Prices K placements with control edges that keep an order.

    With priorities alone, a device chooses its next op when the device is
    free. TensorFlow dispatches ops to an asynchronous device long before that.
    Control edges make dispatch keep the order, but copies still wait for the
    kernels that were dispatched before.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: float [K, N], or [N] for all placements. Ops keep the order in
        which these priorities start them.
      ceiling_s: Ceilings of the steps; see `price_groups`.

    Raises:
      ValueError: an array does not fit the graph.
    """
    del ceiling_s  # Only saves time.
    return self.price(graph, devices, priorities)

  def price_closely(self, graph: op_graph.OpGraph, devices: np.ndarray,
                    priorities: np.ndarray | None = None) -> Prices:
    """Prices K placements more accurately than `price`, if that is possible.

    A search that compares thousands of prices finds prices that are too low by
    chance. So a search prices a placement closely before it keeps the
    placement.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: Priorities for `price_in_order`; None for first in, first out.

    Raises:
      ValueError: an array does not fit the graph.
    """
    if priorities is None:
      return self.price(graph, devices)
    return self.price_in_order(graph, devices, priorities)

  def price_groups(self, graph: op_graph.OpGraph, devices: np.ndarray,
                   ceiling_s: Ceiling | None = math.inf) -> Prices:
    """Prices K placements of the graph's groups; otherwise like `price`.

    Args:
      graph: G groups.
      devices: int [K, G].
      ceiling_s: Seconds, [K] or one for all placements. A step above its
        ceiling gets any price above the ceiling. Its memory may be unknown, and
        the placement may count as not valid. None means that only the best of
        these placements needs an exact price, but the memory of all is known.
    """
    del ceiling_s  # Only saves time.
    return self.price(graph, np.asarray(devices)[:, graph.groups])


class Wrapper(Evaluator):
  """An evaluator that changes or records the prices of another evaluator.

  Subclasses define the prices. `op_seconds` and `costs` are those of the
  wrapped evaluator.

  Attributes:
    cluster: Cluster whose devices placements index.
    simulated: Whether the wrapped evaluator computes its prices.
  """

  def __init__(self, evaluator: Evaluator) -> None:
    """Wraps an evaluator."""
    self.cluster, self.simulated = evaluator.cluster, evaluator.simulated
    self._evaluator = evaluator

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """See `Evaluator`."""
    return self._evaluator.op_seconds(graph)

  def costs(self, graph: op_graph.OpGraph) -> cost_model.CostModel:
    """See `Evaluator`."""
    return self._evaluator.costs(graph)
