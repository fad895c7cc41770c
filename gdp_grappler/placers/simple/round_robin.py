"""Devices in turn."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib


class RoundRobinPlacer:
  """One group after the other, each on the next accelerator.

  Groups come in the topological order of their first ops and single, not in
  chunks: perfect balance of their number, and no thought for what is sent. A
  group that may not have the accelerator whose turn it is gets the next one it
  may have; one that may have none goes to the host, or to the first device it
  may have, and takes nobody's turn. Without accelerators the CPUs take turns.
  The seed has no influence.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    cluster, allowed = problem.cluster, problem.allowed
    turns = np.array(cluster.accelerators)
    devices = constraints.fallback_devices(allowed, cluster.host)
    choices, turn = allowed[:, turns], 0
    for group in _in_topological_order(problem.graph).tolist():
      ahead = np.flatnonzero(np.roll(choices[group], -turn))
      if ahead.size:
        turn = (turn + int(ahead[0])) % len(turns)
        devices[group] = turns[turn]
        turn = (turn + 1) % len(turns)
    return placement_lib.from_groups(problem.graph, devices, cluster)


def _in_topological_order(graph: op_graph.OpGraph) -> np.ndarray:
  """int [G], groups by their first ops."""
  order = graph.groups[graph.topological_order]
  first = np.unique(order, return_index=True)[1]
  return np.argsort(first, kind='stable')
