"""Prices decisions: the only place where units become ops."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.features import schema
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True, eq=False)
class Trials:
  """K priced decisions.

  Attributes:
    decisions: int32 [K, M].
    step_time_s: float64 [K]; infinite where invalid.
    valid: bool [K], it runs and fits into every memory.
  """

  decisions: np.ndarray
  step_time_s: np.ndarray
  valid: np.ndarray

  def best(self) -> int | None:
    """Index of the fastest valid trial, the first of equals."""
    return int(np.argmin(self.step_time_s)) if self.valid.any() else None


class Environment:
  """One graph on one cluster: decisions in, seconds out.

  Attributes:
    graph: N ops.
    cluster: D devices.
    units: int32 [N], the unit of each op.
    features: Of the M units.
    simulated: Whether a simulator answers; else a stopwatch.
    evaluations: Placements priced so far.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               evaluator: evaluator_lib.Evaluator, units: np.ndarray,
               features: schema.GraphFeatures, simulated: bool = True):
    self.graph, self.cluster = graph, cluster
    self.units, self.features = np.asarray(units), features
    self.simulated = simulated
    self.evaluations = 0
    self._evaluator = evaluator
    self._measured = {}

  @property
  def num_units(self) -> int:
    return len(self.features.op_types)

  @property
  def allowed(self) -> np.ndarray:
    """bool [M, D]."""
    return self.features.allowed

  def price(self, decisions: np.ndarray) -> Trials:
    """Prices int [K, M] decisions."""
    decisions = np.asarray(decisions, np.int32)
    if self.simulated:
      seconds, valid = self._simulate(decisions)
    else:
      seconds, valid = self._measure(decisions)
    return Trials(decisions, np.where(valid, seconds, np.inf), valid)

  def placement(self, decisions: np.ndarray) -> placement_lib.Placement:
    """The placement that int [M] decisions stand for."""
    return placement_lib.Placement(
        np.asarray(decisions)[self.units], self.cluster)

  def decisions(self, placement: placement_lib.Placement) -> np.ndarray:
    """int32 [M], where most ops of each unit are.

    A placement by somebody else may tear units apart; what comes out is the
    nearest thing that the policy could have said.
    """
    counts = np.zeros((self.num_units, self.cluster.num_devices), np.int64)
    np.add.at(counts, (self.units, placement.devices), 1)
    return np.where(self.allowed, counts, -1).argmax(axis=1).astype(np.int32)

  def _simulate(self, decisions):
    self.evaluations += len(decisions)
    seconds, peaks = self._evaluator.step_times(
        self.graph, np.ascontiguousarray(decisions[:, self.units]))
    fits = (np.asarray(peaks) <= self.cluster.pool_bytes).all(axis=1)
    return np.asarray(seconds), np.isfinite(seconds) & fits

  def _measure(self, decisions):
    """A placement already timed is not run again."""
    new = {
        row.tobytes(): row for row in decisions
        if row.tobytes() not in self._measured
    }
    if new:
      self.evaluations += len(new)
      self._measured.update(
          zip(
              new,
              self._evaluator.evaluate_many(
                  self.graph,
                  np.stack(list(new.values()))[:, self.units])))
    found = [self._measured[row.tobytes()] for row in decisions]
    return (np.array([e.step_time_s for e in found]),
            np.array([e.valid for e in found]))
