"""Groups on the accelerators in turn."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib


class RoundRobinPlacer:
  """Puts one group after the other on the next accelerator.

  Groups are taken in the topological order of their first ops. The number of
  groups is balanced; transfers are ignored. A group that may not be on the next
  accelerator gets the one after it that the group may have. A group that may be
  on no accelerator gets the host, or else the first device it may have, and the
  next accelerator stays the same. If the cluster has no accelerators, the CPUs
  take turns. The seed has no influence.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`."""
    cluster, allowed = problem.cluster, problem.allowed
    turns = np.array(cluster.accelerators)
    devices = constraints.fallback_devices(allowed, cluster.host)
    choices, turn = allowed[:, turns], 0
    for group in problem.graph.group_order.tolist():
      offsets = np.flatnonzero(np.roll(choices[group], -turn))
      if offsets.size:
        turn = (turn + int(offsets[0])) % len(turns)
        devices[group] = turns[turn]
        turn = (turn + 1) % len(turns)
    return placement_lib.from_groups(problem.graph, devices, cluster)
