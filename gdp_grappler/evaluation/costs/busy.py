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
  return np.maximum(*parts(graph, cluster, cost_model, op_seconds))


def parts(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
          cost_model: cost_model_lib.CostModel,
          op_seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The seconds of each device for each op, and those of its host.

  Both are float64 [N, D]. On an asynchronous device, the first are the seconds
  of the kernels with the gaps between them, 0 if the op launches none. The
  second are the seconds of the dispatch. On other devices they are the op's
  seconds and 0.

  Args:
    graph: N ops.
    cluster: D devices.
    cost_model: Cost model of the ops.
    op_seconds: float64 [N, D], seconds of the kernels by this cost model.
  """
  runs = np.maximum(graph.executions, 1)
  launches = cost_model.launches(graph)
  host_work = cost_model.host_work(graph)
  own_s = np.array(op_seconds, np.float64)
  host_s = np.zeros_like(own_s)
  for number, device in enumerate(cluster.devices):
    if not device.asynchronous:
      continue
    has_kernel = op_seconds[:, number] > 0
    own_s[has_kernel, number] += runs[has_kernel] * device.gap_s
    host_s[:, number] = np.where(
        has_kernel,
        runs * (device.dispatch_s - device.lock_s)
        + host_work * device.dispatch_s + launches * device.lock_s,
        runs * device.visit_s)
  return own_s, host_s
