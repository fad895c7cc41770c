"""Prices decisions about units: all ops of a unit get the unit's device."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.features import schema
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True, eq=False)
class Trials:
  """K priced sets of decisions.

  Attributes:
    decisions: int32 [K, M], device of each unit.
    prices: Prices of the K placements.
  """

  decisions: np.ndarray
  prices: evaluator_lib.Prices

  @property
  def step_time_s(self) -> np.ndarray:
    """Step times in seconds, float64 [K]; infinite where invalid."""
    return self.prices.valid_seconds

  @property
  def valid(self) -> np.ndarray:
    """Whether each placement runs and fits every memory, bool [K]."""
    return self.prices.valid

  def best(self) -> int | None:
    """Returns the index of the fastest valid trial, the first of equals.

    None means that no trial is valid.
    """
    return self.prices.best() if self.valid.any() else None

  def followed_by(self, others: Trials) -> Trials:
    """Returns these trials followed by others."""
    return Trials(np.concatenate([self.decisions, others.decisions]),
                  self.prices.followed_by(others.prices))


class Environment:
  """Maps decisions about the units of one graph to prices.

  Attributes:
    graph: Graph of N ops.
    cluster: Cluster of D devices.
    units: int32 [N], the unit of each op.
    features: Features of the M units.
    evaluations: Number of placements priced so far.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               evaluator: evaluator_lib.Evaluator, units: np.ndarray,
               features: schema.GraphFeatures) -> None:
    self.graph, self.cluster = graph, cluster
    self.units, self.features = np.asarray(units), features
    self.evaluations = 0
    self._evaluator = evaluator
    self._rows: dict[bytes, int] = {}
    self._measured = evaluator_lib.Prices.from_evaluations((),
                                                           cluster.pool_bytes)

  @property
  def num_units(self) -> int:
    """Number M of units."""
    return len(self.features.op_types)

  @property
  def allowed(self) -> np.ndarray:
    """Allowed devices of each unit, bool [M, D]."""
    return self.features.allowed

  @property
  def op_seconds(self) -> np.ndarray:
    """The evaluator's estimate of each op's seconds, float64 [N, D]."""
    return self._evaluator.op_seconds(self.graph)

  def price(self, decisions: np.ndarray) -> Trials:
    """Returns the prices of int [K, M] decisions."""
    decisions = np.asarray(decisions, np.int32)
    priced = self._run if self._evaluator.simulated else self._run_once
    return Trials(decisions, priced(decisions))

  def placement(self, decisions: np.ndarray) -> placement_lib.Placement:
    """Returns the placement of ops that follows from int [M] decisions."""
    return placement_lib.Placement(
        np.asarray(decisions)[self.units], self.cluster)

  def decisions(self, placement: placement_lib.Placement) -> np.ndarray:
    """Returns the device that most ops of each unit have, int32 [M].

    A placement by another placer may split units. The result is then the
    nearest placement that the policy can express.
    """
    counts = np.zeros((self.num_units, self.cluster.num_devices), np.int64)
    np.add.at(counts, (self.units, placement.devices), 1)
    return np.where(self.allowed, counts, -1).argmax(axis=1).astype(np.int32)

  def _run(self, decisions: np.ndarray) -> evaluator_lib.Prices:
    self.evaluations += len(decisions)
    return self._evaluator.price(self.graph,
                                 np.ascontiguousarray(decisions[:, self.units]))

  def _run_once(self, decisions: np.ndarray) -> evaluator_lib.Prices:
    """Prices decisions, and measures no placement a second time."""
    keys = [row.tobytes() for row in decisions]
    new = {
        key: row for key, row in zip(keys, decisions) if key not in self._rows
    }
    if new:
      prices = self._run(np.stack(list(new.values())))
      self._rows.update(zip(new, itertools.count(len(self._rows))))
      self._measured = self._measured.followed_by(prices)
    return self._measured[np.array([self._rows[key] for key in keys], int)]
