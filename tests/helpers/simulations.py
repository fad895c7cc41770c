"""Small steps with fixed seconds, whose schedules are easy to verify."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator
from gdp_grappler.graph import op_graph
from helpers import clusters

# The devices of `clusters.make_cluster()`.
CPU, GPU0, GPU1 = range(3)


def simulate(graph: op_graph.OpGraph, devices: Sequence[int] | np.ndarray,
             seconds: Any = 1.0, cluster: cluster_lib.Cluster | None = None,
             priorities: Any = None,
             workspace: Any = 0) -> schedule_lib.Schedule:
  """Returns the schedule of a placement; for costs see `FixedCosts`."""
  cluster = cluster or clusters.make_cluster()
  costs = clusters.FixedCosts(seconds, workspace)
  return simulator.Simulator(cluster, costs).schedule(
      graph, placement_lib.Placement(devices, cluster, priorities))


def cluster_of(step_s: float = 0.0,
               changes: Mapping[int, Mapping[str, Any]] | None = None,
               **fields: Any) -> cluster_lib.Cluster:
  """Returns make_cluster(**fields) with changed devices, {index: {...}}."""
  cluster = clusters.make_cluster(**fields)
  devices = [
      dataclasses.replace(device,
                          **(changes or {}).get(i, {}))
      for i, device in enumerate(cluster.devices)
  ]
  return dataclasses.replace(cluster, devices=devices, step_s=step_s)


def memory_curve(schedule: schedule_lib.Schedule,
                 pool: int) -> list[tuple[float, int]]:
  """Returns (seconds, bytes) of each change of a pool's use."""
  mine = schedule.memory_pools == pool
  return list(
      zip(schedule.memory_s[mine].tolist(),
          schedule.memory_bytes[mine].tolist()))
