"""Seconds of each op on each device.

A roofline (Williams et al., CACM 2009): an op takes the longer of its
arithmetic at the device's dense-kernel rate and its traffic at the memory's
bandwidth, plus the time to launch it. FLOPs and bytes are those of Grappler's
OpLevelCostEstimator (`graph.op_properties`), which has no launch overhead.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph

# Ops that hand on a buffer or nothing: the executor visits them, but no kernel
# touches their data.
_NO_KERNEL = frozenset((
    'Const', 'Enter', 'Exit', 'ExpandDims', 'Identity', 'IdentityN', 'LoopCond',
    'Merge', 'NextIteration', 'NoOp', 'Placeholder', 'PreventGradient',
    'Rank', 'ReadVariableOp', 'RefEnter', 'RefExit', 'RefIdentity', 'RefMerge',
    'RefNextIteration', 'RefSwitch', 'Reshape', 'Shape', 'ShapeN', 'Size',
    'Snapshot', 'Squeeze', 'StopGradient', 'Switch', 'VarHandleOp', 'Variable',
    'VariableShape', 'VariableV2', '_Arg', '_Retval', '_DeviceArg',
    '_DeviceRetval', 'TensorListElementShape', 'TensorListLength'))


@dataclasses.dataclass(frozen=True)
class CostModel:
  """The roofline and its one constant of its own.

  Attributes:
    visit_s: Seconds the executor spends on an op that launches no kernel.
  """

  visit_s: float = 5e-7

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """float64 [N, D], seconds of one step that each op takes on each device.

    What an op takes once, as often as the graph says that it runs.
    """
    rate = np.array([d.peak_flops * d.efficiency for d in cluster.devices])
    bandwidth = np.array([d.bandwidth_bytes_per_s for d in cluster.devices])
    launch = np.array([d.launch_s for d in cluster.devices])
    busy = np.maximum(graph.flops[:, None] / rate,
                      graph.io_bytes[:, None] / bandwidth) + launch
    idle = np.array([t in _NO_KERNEL for t in graph.op_types], bool)
    once = np.where(idle[:, None], self.visit_s, busy)
    return once * graph.executions[:, None]

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """int64 [N, D], memory each op needs on each device while it runs."""
    return np.zeros((graph.num_ops, cluster.num_devices), np.int64)
