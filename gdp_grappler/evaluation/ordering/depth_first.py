"""Priorities of ops by a depth-first search: one result after the other.

A batch may be cut into parts (microbatches). By upward rank, the same op of all
parts runs one after the other, so all parts pass one device before the next
device gets any part. Depth first, all ops of the first part run before the
second part begins. Then devices work on different parts at the same time,
forward and backward, as in a pipeline (Narayanan et al., "PipeDream:
Generalized Pipeline Parallelism for DNN Training", SOSP 2019).
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
