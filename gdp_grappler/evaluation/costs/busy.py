"""Seconds for which ops keep devices busy, including the host's dispatch.

A GPU runs kernels while a thread of the host dispatches the next ones. The
slower of the two limits the step. If kernels are short, the host is slower. A
placer should then balance the host's seconds, and not those of the kernels. The
simulator knows both numbers of each op. Partitioners and list schedulers take
one number per op, which this module computes.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.graph import op_graph


def seconds(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
            cost_model: cost_model_lib.CostModel,
            op_seconds: np.ndarray) -> np.ndarray:
  """float64 [N, D], seconds that each op keeps each device busy.

  On an asynchronous device these are the seconds of the kernels with the gaps
  between them, or the host's seconds to dispatch them, whichever is longer. On
  other devices they are the op's seconds. The sum over all ops is no lower
  bound of a step: a device may wait for its host during some ops, and the host
  for the device during others.

  Args:
    graph: N ops.
    cluster: D devices.
    cost_model: Cost model of the ops.
    op_seconds: float64 [N, D], seconds of the kernels by this cost model.
  """
  runs = np.maximum(graph.executions, 1)
  launches = cost_model.launches(graph)
  host_work = cost_model.host_work(graph)
  result = np.array(op_seconds, np.float64)
  for number, device in enumerate(cluster.devices):
    if not device.asynchronous:
      continue
    of_kernels = op_seconds[:, number]
    dispatched_s = (runs * (device.dispatch_s - device.lock_s)
                    + host_work * device.dispatch_s + launches * device.lock_s)
    result[:, number] = np.where(
        of_kernels > 0,
        np.maximum(of_kernels + runs * device.gap_s, dispatched_s),
        runs * device.visit_s)
  return result
