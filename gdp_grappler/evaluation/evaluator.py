"""What every evaluator answers."""

from __future__ import annotations

import dataclasses
import math
from typing import Protocol, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import fixed_costs
from gdp_grappler.graph import op_graph

# See `Prices.keys`.
Key = tuple[bool, bool, int, float]


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """The price of one placement, and what is wrong with it.

  Attributes:
    step_time_s: Seconds of one step; infinite if it cannot run.
    peak_bytes: [P] highest use of each memory pool of the cluster.
    violations: What makes the placement invalid; empty if nothing does.
    simulated: False if the step was measured.
    spread_s: Interquartile range of the measured steps; 0 if simulated.
  """

  step_time_s: float
  peak_bytes: tuple[int, ...]
  violations: tuple[placement_lib.Violation, ...]
  simulated: bool
  spread_s: float = 0.

  @property
  def valid(self) -> bool:
    """Whether the placement runs: it breaks no rule and fits."""
    return not self.violations


@dataclasses.dataclass(frozen=True, eq=False)
class Prices:
  """The prices of K placements on P memory pools, to choose from.

  Attributes:
    seconds: float64 [K], of one step; infinite if the placement cannot run.
    peak_bytes: int64 [K, P], highest use of each memory pool.
    overflow_bytes: int64 [K], bytes by which memories overflow, summed over the
      memories; 0 if a measured step ran all the same.
    valid: bool [K], whether the placement runs and fits.
  """

  seconds: np.ndarray
  peak_bytes: np.ndarray
  overflow_bytes: np.ndarray
  valid: np.ndarray

  @classmethod
  def from_peaks(cls, seconds: np.ndarray, peak_bytes: np.ndarray,
                 pool_bytes: np.ndarray) -> Prices:
    """Valid is what runs and stays within memories of int [P] bytes."""
    overflow = np.maximum(peak_bytes - pool_bytes, 0).sum(axis=1)
    return cls(seconds, peak_bytes, overflow,
               np.isfinite(seconds) & (overflow == 0))

  @classmethod
  def from_evaluations(cls, evaluations: Sequence[Evaluation],
                       pool_bytes: np.ndarray) -> Prices:
    """Valid is what each evaluation says; memories have int [P] bytes."""
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
    """Some of the placements, by int or bool index arrays."""
    return Prices(*(column[rows] for column in self._columns))

  def followed_by(self, others: Prices) -> Prices:
    """These and then the others."""
    return Prices(*map(np.concatenate, zip(self._columns, others._columns)))

  @property
  def valid_seconds(self) -> np.ndarray:
    """float64 [K], `seconds`, but infinite where a placement is not valid."""
    return np.where(self.valid, self.seconds, np.inf)

  def keys(self) -> list[Key]:
    """[K], the less the better, over all prices of one graph and cluster.

    Valid placements come first, and placements that no memory could make
    valid come last. Then the least overflow is better, then the shorter step.
    """
    return list(
        zip((~self.valid).tolist(),
            np.isinf(self.seconds).tolist(), self.overflow_bytes.tolist(),
            self.seconds.tolist()))

  def ranking(self) -> list[int]:
    """[K], indices from the best to the worst; of equals the first first."""
    keys = self.keys()
    return sorted(range(len(keys)), key=keys.__getitem__)

  def best(self) -> int:
    """Index of the best, the first of equals.

    Raises:
      ValueError: there are no placements.
    """
    keys = self.keys()
    return keys.index(min(keys))

  @property
  def _columns(self) -> tuple[np.ndarray, ...]:
    return self.seconds, self.peak_bytes, self.overflow_bytes, self.valid


# Of one placement, or of all: float or float64 [K].
Ceiling = float | np.ndarray


class Evaluator(Protocol):
  """Prices placements of graphs on one cluster.

  Attributes:
    cluster: What placements index.
    simulated: Whether prices are computed, of which a search can afford
      thousands; else steps run, and each price takes their time.
  """

  cluster: cluster_lib.Cluster
  simulated: bool

  def op_seconds(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N, D], seconds of each op on each device.

    Simulated prices use these seconds. Where steps are measured as a whole,
    they are estimates.
    """

  def costs(self, graph: op_graph.OpGraph) -> cost_model.CostModel:
    """The cost model of this graph's kernels and of the host.

    By default it has `op_seconds` and the usual times of the host.
    """
    return fixed_costs.FixedCostModel(self.op_seconds(graph))

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> Evaluation:
    """Prices one placement, in the order of its priorities if it has any."""

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> Prices:
    """Prices K placements.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: Of waiting ops; float [K, N], or [N] for all placements
        alike, or None for first in, first out.

    Raises:
      ValueError: an array does not fit the graph.
    """

  def price_in_order(self, graph: op_graph.OpGraph, devices: np.ndarray,
                     priorities: np.ndarray,
                     ceiling_s: Ceiling = math.inf) -> Prices:
    """Prices K placements with control edges that keep an order.

    With priorities alone, a device chooses its next op when it is free.
    TensorFlow's asynchronous devices do not wait so long: dispatch runs ahead.
    Control edges make them keep the order, but copies still wait for the
    kernels that were dispatched before.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: float [K, N], or [N] for all placements. The order is the one
        in which these priorities start ops.
      ceiling_s: As of `price_groups`.

    Raises:
      ValueError: an array does not fit the graph.
    """
    del ceiling_s  # Only saves time.
    return self.price(graph, devices, priorities)

  def price_closely(self, graph: op_graph.OpGraph, devices: np.ndarray,
                    priorities: np.ndarray | None = None) -> Prices:
    """Prices K placements more accurately than `price`, if that is possible.

    A search that compares thousands of prices finds those that are too low by
    chance. So it prices a placement again before it keeps the placement.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: As of `price_in_order`; None for first in, first out.

    Raises:
      ValueError: an array does not fit the graph.
    """
    if priorities is None:
      return self.price(graph, devices)
    return self.price_in_order(graph, devices, priorities)

  def price_groups(self, graph: op_graph.OpGraph, devices: np.ndarray,
                   ceiling_s: Ceiling | None = math.inf,
                   priorities: np.ndarray | None = None) -> Prices:
    """Prices int [K, G], placements of the graph's groups, as `price`.

    Args:
      graph: G groups.
      devices: int [K, G].
      ceiling_s: [K] or one for all. A step above its ceiling gets any price
        above the ceiling. Its memory may be unknown, and it may count as not
        valid. None stands for the price of the best of these placements.
      priorities: Of waiting ops, as of `price`.
    """
    del ceiling_s  # Only saves time.
    return self.price(graph, np.asarray(devices)[:, graph.groups], priorities)


class Wrapper(Evaluator):
  """An evaluator that changes or records the prices of another evaluator.

  A subclass prices. `op_seconds` and `costs` are those of the other evaluator.

  Attributes:
    cluster: What placements index.
    simulated: Whether the other one computes its prices.
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
