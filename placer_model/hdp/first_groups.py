"""The groups that the Grouper starts with."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.placers import placer as placer_lib

# Factor on the desired number of groups while coarsening gives too many.
_LESS = 0.8


def joined(problem: placer_lib.Problem, max_groups: int) -> np.ndarray:
  """Returns groups of units joined along their largest tensors, int32 [G].

  Groups are numbered in topological order, so that the Placer processes them in
  the direction of the dataflow.

  Args:
    problem: Problem with G units.
    max_groups: Largest number of groups. If units have more different sets of
      allowed devices than that, the last group has all remaining units.
  """
  graph, aim = problem.graph, max_groups
  while True:
    of_ops = coarsening.coarsen(
        graph, problem.allowed, problem.op_seconds,
        coarsening.CoarseningConfig(aim, graph.num_groups + 1))
    if aim == 1 or of_ops.max(initial=0) < max_groups:
      break
    aim = max(1, int(aim * _LESS))
  result = np.zeros(graph.num_groups, np.int32)
  result[graph.groups] = np.minimum(of_ops, max_groups - 1)
  return result
