"""Another order of ready ops: one result after the other.

Ranks put equals side by side: where a batch was cut into parts, all of them go
through a device before the next device gets any. Depth first, what the first
part needs is done before the second is begun, so that devices work on different
parts at a time, forward and backward, as pipelines do (Narayanan et al.,
"PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP 2019).
"""

from __future__ import annotations

import weakref

import numpy as np

from gdp_grappler.graph import op_graph

# They are asked for once per placement.
_known: weakref.WeakKeyDictionary[op_graph.OpGraph,
                                  np.ndarray] = weakref.WeakKeyDictionary()


def priorities(graph: op_graph.OpGraph) -> np.ndarray:
  """float64 [N], the higher, the earlier a result that needs the op is done.

  Results are the ops that nothing waits for, in the order of the graph; what
  an op needs is done in the order of its inputs.
  """
  known = _known.get(graph)
  if known is None:
    known = _known[graph] = _priorities(graph)
    known.flags.writeable = False
  return known


def _priorities(graph: op_graph.OpGraph) -> np.ndarray:
  needs: list[list[int]] = [[] for _ in range(graph.num_ops)]
  for producer, consumer in graph.edges.tolist():
    needs[consumer].append(producer)
  results = np.bincount(graph.edges[:, 0], minlength=graph.num_ops) == 0
  done, order = [False] * graph.num_ops, []
  for result in np.flatnonzero(results).tolist():
    path = [(result, iter(needs[result]))]
    while path:
      op, inputs = path[-1]
      for producer in inputs:
        if not done[producer]:
          done[producer] = True
          path.append((producer, iter(needs[producer])))
          break
      else:
        path.pop()
        order.append(op)
  positions = np.zeros(graph.num_ops)
  positions[order] = np.arange(graph.num_ops, 0, -1)
  return positions
