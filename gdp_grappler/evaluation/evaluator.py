"""What every evaluator answers."""

from __future__ import annotations

import dataclasses
from typing import Protocol, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class Evaluation:
  """The price of one placement.

  Attributes:
    step_time_s: Seconds of one step; infinite if it cannot run.
    peak_bytes: [P] highest use of each memory pool of the cluster.
    violations: What makes the placement invalid; empty if nothing does.
    simulated: False if a stopwatch said it.
    spread_s: Interquartile range of the measured steps; 0 if simulated.
  """

  step_time_s: float
  peak_bytes: tuple[int, ...]
  violations: tuple[placement_lib.Violation, ...]
  simulated: bool
  spread_s: float = 0.

  @property
  def valid(self) -> bool:
    return not self.violations

  def overflow_bytes(self, pool_bytes: np.ndarray) -> int:
    """What is too much for memories of these sizes, int [P], in all."""
    return int(np.maximum(np.array(self.peak_bytes) - pool_bytes, 0).sum())


class Evaluator(Protocol):
  """Prices placements of any graph."""

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> Evaluation:
    """Prices one placement."""

  def evaluate_many(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray | None = None) -> Sequence[Evaluation]:
    """Prices K placements on the evaluator's own cluster.

    Args:
      graph: N ops.
      devices: int [K, N].
      priorities: float [K, N] as in `Placement`; None for first in, first out.
    """
