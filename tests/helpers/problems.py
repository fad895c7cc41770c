"""Problems for placers, priced by the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from helpers import clusters


def make(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster | None = None,
         seconds: Any = None, workspace: Any = 0, seed: int = 0,
         **fields: Any) -> placer_lib.Problem:
  """A problem.

  Args:
    graph: What to place.
    cluster: Where; by default on two GPUs.
    seconds: What each op takes, as in `clusters.FixedCosts`; by default what
      the roofline says.
    workspace: Likewise, where there are seconds.
    seed: Of the placer.
    **fields: Further ones of the problem.
  """
  cluster = cluster or clusters.make_cluster(2)
  costs = None if seconds is None else clusters.FixedCosts(seconds, workspace)
  return placer_lib.Problem(graph, cluster, simulator.Simulator(cluster, costs),
                            seed, **fields)


def placed(placer: placer_lib.Placer, graph: op_graph.OpGraph,
           cluster: cluster_lib.Cluster | None = None, seconds: Any = None,
           **fields: Any) -> np.ndarray:
  """int [N], where a placer puts the ops; arguments are those of `make`."""
  return placer.place(make(graph, cluster, seconds, **fields)).devices
