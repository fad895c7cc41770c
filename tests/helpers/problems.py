"""Makes problems for placers, with the simulator as evaluator."""

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
  """Returns a problem.

  Args:
    graph: The graph to place.
    cluster: The cluster; by default one with two GPUs.
    seconds: Seconds of ops, see `clusters.FixedCosts`; by default those of the
      roofline.
    workspace: Workspace of ops, see `clusters.FixedCosts`; only with `seconds`.
    seed: Seed of the placer.
    wrap: Makes the evaluator from the simulator; by default the simulator is
      the evaluator.
    **fields: Further fields of the problem.
  """
  cluster = cluster or clusters.make_cluster(2)
  costs = None if seconds is None else clusters.FixedCosts(seconds, workspace)
  prices = simulator.Simulator(cluster, costs, threads=1)
  return placer_lib.Problem(graph, cluster,
                            wrap(prices) if wrap else prices, seed, **fields)


def placed(placer: placer_lib.Placer, graph: op_graph.OpGraph,
           cluster: cluster_lib.Cluster | None = None, seconds: Any = None,
           **fields: Any) -> np.ndarray:
  """Returns int [N], the devices by a placer; for arguments see `make`."""
  return placer.place(make(graph, cluster, seconds, **fields)).devices


def seconds_of(problem: placer_lib.Problem,
               placement: placement_lib.Placement) -> float:
  """Returns the seconds of a placement's step, which must be valid."""
  evaluation = problem.evaluator.evaluate(problem.graph, placement)
  assert evaluation.valid, evaluation.violations
  return evaluation.step_time_s
