"""Another order of ready ops: one result after the other.

Upward ranks put equal ops side by side. If a batch was cut into parts, all
parts pass one device before the next device gets any. Depth first, everything
that the first part needs is done before the second part begins. Devices then
work on different parts at a time, forward and backward, as in a pipeline
(Narayanan et al., "PipeDream: Generalized Pipeline Parallelism for DNN
Training", SOSP 2019).
"""

from __future__ import annotations

import weakref

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph

# Cached, because they are needed once per placement.
_known: weakref.WeakKeyDictionary[op_graph.OpGraph,
                                  np.ndarray] = weakref.WeakKeyDictionary()


def priorities(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [N], the higher, the earlier a result that needs the op is done.

  Results are the ops that nothing waits for, in the order of the graph; what
  an op needs is done in the order of its inputs.
  """
  known = _known.get(graph)
  if known is None:
    known = _known[graph] = native_graph.depth_first(graph.num_ops, graph.edges)
    known.flags.writeable = False
  return known
