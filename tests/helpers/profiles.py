"""Makes invented profiles of graphs."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.graph import op_graph
from helpers import graphs

CPU = '/job:localhost/replica:0/task:0/device:CPU:0'


def make_profile(
    num_ops: int, *,
    devices: Sequence[tuple[str,
                            str]] = ((CPU, 'CPU'),)) -> profile_lib.Profile:
  """Returns a profile of a chain of MatMuls, of which op i takes i + 1 ms."""
  graph = graphs.chain(num_ops, flops=np.arange(num_ops) * 1e6)
  return of_graph(graph, (np.arange(num_ops) + 1) * 1e-3, devices=devices)


def of_graph(graph: op_graph.OpGraph, seconds: np.ndarray, *,
             devices: Sequence[tuple[str, str]] = ((CPU, 'CPU'),),
             executions=1., workspace_bytes=7, visit_s: float = 1e-6,
             empty_step_s: float = 1e-5, bus: str = '',
             contention: float = 0.) -> profile_lib.Profile:
  """Returns a consistent profile.

  Args:
    graph: N ops.
    seconds: [N], seconds of all executions of each op.
    devices: Name and type of each device.
    executions: [N] or one number for all ops.
    workspace_bytes: [N] or one number for all ops.
    visit_s: Seconds of a visit, for each device.
    empty_step_s: Seconds of an empty step, for each device.
    bus: Bus of all devices.
    contention: Contention of all devices.
  """
  n = graph.num_ops
  executions = np.broadcast_to(np.asarray(executions, float), n)
  step_s = (np.sum(seconds) + np.maximum(executions, 1).sum() * visit_s
            + empty_step_s)
  return profile_lib.Profile(
      graph.name, graph.fingerprint, '2.21.0', 32, graph.names, graph.op_types,
      graph.flops, graph.io_bytes,
      tuple(
          profile_lib.DeviceProfile(
              name, kind, 'made up', (0,), 1, 20, float(step_s), empty_step_s,
              0., 1., visit_s, np.asarray(seconds, float), executions,
              np.broadcast_to(np.int64(workspace_bytes), n), bus, contention)
          for name, kind in devices))
