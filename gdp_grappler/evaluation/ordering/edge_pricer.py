"""Simulates steps with additional control edges."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Callable

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.legality import orderable


class EdgePricer:
  """Simulates one placement with many sets of edges, a limited number of times.

  Attributes:
    graph: N ops. The graph has additional edges that keep an op from running
      before a loop on which it depends (`orderable.loop_barriers`).
    placement: Placement of these ops, without priorities.
    may: bool [N], ops that control edges may join; see `orderable`.
  """

  def __init__(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement,
               simulator: simulator_lib.Simulator, edge_s: float,
               max_simulated_ops: int, max_s: float = math.inf,
               clock: Callable[[], float] = time.monotonic) -> None:
    """Prepares simulations.

    Args:
      graph: N ops.
      placement: Legal placement of these ops, on the simulator's cluster.
      simulator: Simulator of the steps.
      edge_s: Seconds that an edge adds to the op that waits.
      max_simulated_ops: Largest number of ops in all simulations together.
      max_s: Seconds after which no simulations are left.
      clock: Function that returns seconds since any fixed moment.
    """
    barriers = orderable.loop_barriers(graph)
    # Without barriers `graph` stays the same object, for which the simulator
    # has prepared its data.
    self.graph = with_edges(graph, barriers) if len(barriers) else graph
    self.placement = dataclasses.replace(placement, priorities=None)
    self.may = simulator.orderable(graph)
    self._left = max_simulated_ops // max(1, graph.num_ops)
    self._clock, self._end_s = clock, clock() + max_s
    self._edge_s = edge_s
    # Barriers add no cost: the layout has the costs of the graph's own ops.
    self._layout = simulator.layout(self.graph)

  @property
  def left(self) -> int:
    """Number of simulations that are left; 0 after the time limit."""
    return self._left if self._clock() < self._end_s else 0

  def schedule(self, edges: np.ndarray) -> schedule_lib.Schedule:
    """The step with control edges, int [C, 2], first in, first out.

    Raises:
      InvalidGraphError: the edges form a cycle.
    """
    return self._schedule(as_edges(edges), None)

  def obeying(self, priorities: np.ndarray) -> schedule_lib.Schedule:
    """The step if TensorFlow obeyed priorities, float64 [N].

    Raises:
      InvalidGraphError: loops of the graph depend on each other in a cycle.
    """
    return self._schedule(as_edges([]), priorities)

  def _schedule(self, edges: np.ndarray,
                priorities: np.ndarray | None) -> schedule_lib.Schedule:
    self._left -= 1
    waits = np.bincount(edges[:, 1], minlength=self.graph.num_ops)
    layout = dataclasses.replace(
        self._layout, control_edges=edges,
        seconds=self._layout.seconds + self._edge_s * waits[:, None])
    schedule = native_simulator.PreparedGraph(layout).schedule(
        self.placement.devices, priorities)
    assert schedule is not None  # The placement is legal.
    return schedule


def price(graph: op_graph.OpGraph, edges: np.ndarray, devices: np.ndarray,
          simulator: simulator_lib.Simulator) -> evaluator_lib.Prices:
  """Prices placements of a graph with control edges that cost nothing.

  Args:
    graph: N ops.
    edges: int [C, 2], control edges in addition to the graph's.
    devices: int [K, N].
    simulator: Simulator of the placements' cluster.

  Raises:
    InvalidGraphError: the edges form a cycle.
  """
  layout = dataclasses.replace(simulator.layout(graph),
                               control_edges=as_edges(edges))
  seconds, peaks = native_simulator.PreparedGraph(layout).run(
      np.ascontiguousarray(devices, np.int32), None, simulator.threads)
  return evaluator_lib.Prices.from_peaks(seconds, peaks,
                                         simulator.cluster.pool_bytes)


def with_edges(graph: op_graph.OpGraph, edges: np.ndarray) -> op_graph.OpGraph:
  """The graph with more control edges, int [C, 2]."""
  return graph.replace(
      edges=np.concatenate([graph.edges, as_edges(edges)]),
      edge_tensors=np.append(graph.edge_tensors, np.full(len(edges), -1)),
      read_on_host=np.append(graph.read_on_host, np.zeros(len(edges), bool)))


def as_edges(edges: np.ndarray | list[tuple[int, int]]) -> np.ndarray:
  """int32 [C, 2], also if there are no edges."""
  return np.array(edges, np.int32).reshape(-1, 2)
