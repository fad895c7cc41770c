"""Groups that the Grouper begins with."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import coarsening
from gdp_grappler.placers import placer as placer_lib

# What the aim is lowered by while it gives too many groups.
_LESS = 0.8


def joined(problem: placer_lib.Problem, max_groups: int) -> np.ndarray:
  """int32 [G], units joined along their largest tensors.

  Groups are numbered in topological order, so that the Placer reads and decides
  them in the order in which data flows.

  Args:
    problem: G units.
    max_groups: At most so many. Where even more sets of units have different
      devices to choose from, the last group has all that are left.
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
