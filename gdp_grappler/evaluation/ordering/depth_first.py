"""Priorities of ops by a depth-first search: one result after the other.

By upward ranks, equal ops run one after the other. If a batch was cut into
parts, all parts pass one device before the next device gets any part. Depth
first, all ops that the first part needs run before the second part begins.
Devices then work on different parts at a time, forward and backward, as in a
pipeline (Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN
Training", SOSP 2019).
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph


# Each placement needs the priorities of its graph.
@op_graph.once_per_graph
def priorities(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [N], priorities: ops of earlier results have higher ones.

  Results are the ops without consumers, in the order of the graph. The ops that
  an op depends on run in the order of its inputs.
  """
  result = native_graph.depth_first(graph.num_ops, graph.edges)
  result.flags.writeable = False
  return result
