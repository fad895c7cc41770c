"""Problems for placers, priced by the simulator."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from helpers import clusters


def make(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster | None = None,
         seconds: Any = None, workspace: Any = 0, seed: int = 0,
         wrap: Callable[[simulator.Simulator], evaluator_lib.Evaluator]
         | None = None, **fields: Any) -> placer_lib.Problem:
  """A problem.

  Args:
    graph: What to place.
    cluster: Where; by default on two GPUs.
    seconds: What each op takes, as in `clusters.FixedCosts`; by default what
      the roofline says.
    workspace: Likewise, where there are seconds.
    seed: Of the placer.
    wrap: Makes the evaluator of the simulator, which it is itself by default.
    **fields: Further ones of the problem.
  """
  cluster = cluster or clusters.make_cluster(2)
  costs = None if seconds is None else clusters.FixedCosts(seconds, workspace)
  prices = simulator.Simulator(cluster, costs, threads=1)
  return placer_lib.Problem(graph, cluster,
                            wrap(prices) if wrap else prices, seed, **fields)


def placed(placer: placer_lib.Placer, graph: op_graph.OpGraph,
           cluster: cluster_lib.Cluster | None = None, seconds: Any = None,
           **fields: Any) -> np.ndarray:
  """int [N], where a placer puts the ops; arguments are those of `make`."""
  return placer.place(make(graph, cluster, seconds, **fields)).devices


def seconds_of(problem: placer_lib.Problem,
               placement: placement_lib.Placement) -> float:
  """What its evaluator says that a step of a placement takes, which runs."""
  evaluation = problem.evaluator.evaluate(problem.graph, placement)
  assert evaluation.valid, evaluation.violations
  return evaluation.step_time_s
