"""Priorities of ops by a depth-first search: one result after the other.

A batch may be cut into parts (microbatches). By upward rank, a device runs one
op for all parts, one part after the other, and then the next op. So the next
device gets its first part late. Depth first, a device runs all its ops for the
first part before the second part. So devices work on different parts at a time,
forward and backward, as in a pipeline (Narayanan et al., "PipeDream:
Generalized Pipeline Parallelism for DNN Training", SOSP 2019).
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph


# All placements of a graph have the same priorities.
@op_graph.once_per_graph
def priorities(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [N], priorities: ops of earlier results have higher ones.

  Results are the ops without consumers, in the order of the graph. The ops that
  an op depends on run in the order of its inputs.
  """
  result = native_graph.depth_first(graph.num_ops, graph.edges)
  result.flags.writeable = False
  return result
