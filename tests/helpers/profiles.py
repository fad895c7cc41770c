"""Profiles of graphs that nobody ran."""

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
  """Of a chain of MatMuls whose op i takes i + 1 ms."""
  graph = graphs.chain(num_ops, flops=np.arange(num_ops) * 1e6)
  return of_graph(graph, (np.arange(num_ops) + 1) * 1e-3, devices=devices)


def of_graph(graph: op_graph.OpGraph, seconds: np.ndarray, *,
             devices: Sequence[tuple[str, str]] = ((CPU, 'CPU'),),
             executions=1., workspace_bytes=7, visit_s: float = 1e-6,
             empty_step_s: float = 1e-5, bus: str = '',
             contention: float = 0.) -> profile_lib.Profile:
  """A profile whose parts add up.

  Args:
    graph: N ops.
    seconds: [N] of all executions of each.
    devices: Name and type of each.
    executions: [N] or one number for all.
    workspace_bytes: Likewise.
    visit_s: Of each device.
    empty_step_s: Of each device.
    bus: Of all devices.
    contention: Likewise.
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
