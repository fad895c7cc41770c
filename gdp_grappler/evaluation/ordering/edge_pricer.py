"""What a step takes with further control edges."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.ordering import orderable
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


class EdgePricer:
  """Simulates one placement with many sets of edges, up to a number of times.

  Attributes:
    graph: N ops; loops are closed, without which an op could come before what
      it depends on.
    placement: Of these ops, first in, first out.
    may: bool [N], ops that control edges may join; see `orderable`.
    left: Simulations that are left.
  """

  def __init__(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement,
               simulator: simulator_lib.Simulator, edge_s: float,
               max_simulated_ops: int) -> None:
    """Prepares.

    Args:
      graph: N ops.
      placement: Of these ops, on the simulator's cluster, legal.
      simulator: Prices.
      edge_s: Seconds that an edge adds to the op that waits.
      max_simulated_ops: Ops of all simulations together.
    """
    self.graph = with_edges(graph, orderable.loop_barriers(graph))
    self.placement = dataclasses.replace(placement, priorities=None)
    self.may = orderable.orderable(graph)
    self.left = max_simulated_ops // max(1, graph.num_ops)
    self._edge_s = edge_s
    # The costs of the graph itself: barriers are no edges that cost.
    self._layout = simulator.layout(self.graph)

  def schedule(self, edges: np.ndarray) -> schedule_lib.Schedule:
    """The step with control edges, int [C, 2], first in, first out.

    Raises:
      InvalidGraphError: the edges form a cycle.
    """
    return self._schedule(as_edges(edges), None)

  def wanted(self, priorities: np.ndarray) -> schedule_lib.Schedule:
    """The step if TensorFlow obeyed priorities, float64 [N].

    Raises:
      InvalidGraphError: the graph has loops that feed each other.
    """
    return self._schedule(as_edges([]), priorities)

  def _schedule(self, edges: np.ndarray,
                priorities: np.ndarray | None) -> schedule_lib.Schedule:
    self.left -= 1
    waits = np.bincount(edges[:, 1], minlength=self.graph.num_ops)
    layout = dataclasses.replace(
        self._layout, control_edges=edges,
        seconds=self._layout.seconds + self._edge_s * waits[:, None])
    schedule = native_simulator.PreparedGraph(layout).schedule(
        self.placement.devices, priorities)
    assert schedule is not None  # The placement is legal.
    return schedule


def with_edges(graph: op_graph.OpGraph, edges: np.ndarray) -> op_graph.OpGraph:
  """The graph with more control edges, int [C, 2]."""
  return graph.replace(
      edges=np.concatenate([graph.edges, as_edges(edges)]),
      edge_tensors=np.concatenate(
          [graph.edge_tensors,
           np.full(len(edges), -1, np.int32)]))


def as_edges(edges: np.ndarray | list[tuple[int, int]]) -> np.ndarray:
  """int32 [C, 2], also of none."""
  return np.array(edges, np.int32).reshape(-1, 2)
