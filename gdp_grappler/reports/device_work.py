"""The work of each device in a simulated step, in seconds."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.reports import units


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceWork:
  """Work of D devices. The seconds of parallel slots are added up.

  Attributes:
    ops: int [D], number of ops.
    op_s: float64 [D], seconds of these ops.
    copy_s: float64 [D], seconds of copying for devices without copy engines.
  """

  ops: np.ndarray
  op_s: np.ndarray
  copy_s: np.ndarray


def of_schedule(placement: placement_lib.Placement,
                schedule: schedule_lib.Schedule) -> DeviceWork:
  """Returns the work of D devices in the schedule of a placement."""
  count = placement.cluster.num_devices
  return DeviceWork(
      np.bincount(placement.devices, minlength=count),
      np.bincount(schedule.devices, schedule.end_s - schedule.start_s,
                  minlength=count),
      np.bincount(schedule.work_devices,
                  schedule.work_end_s - schedule.work_start_s, minlength=count))


def pool_names(cluster: cluster_lib.Cluster) -> list[str]:
  """Returns names of memories, [P]; 'CPU:0 + CPU:1' for a shared one."""
  pools = cluster.memory_pools.tolist()
  return [
      ' + '.join(label for label, own in zip(cluster.device_labels, pools)
                 if own == pool) for pool in range(max(pools) + 1)
  ]


def rows(placement: placement_lib.Placement,
         schedule: schedule_lib.Schedule) -> list[tuple[str, ...]]:
  """Returns a table of the devices, with the head as first row.

  Args:
    placement: Placement on D devices.
    schedule: Schedule of this placement.
  """
  cluster = placement.cluster
  work = of_schedule(placement, schedule)
  result: list[tuple[str, ...]] = [('device', 'ops', 'busy', 'peak memory')]
  for label, ops, busy_s, pool in zip(cluster.device_labels, work.ops,
                                      work.op_s + work.copy_s,
                                      cluster.memory_pools):
    result.append((label, str(ops), units.ms(busy_s),
                   f'{units.amount(int(schedule.peak_bytes[pool]), "B")} of '
                   f'{units.amount(int(cluster.pool_bytes[pool]), "B")}'))
  return result
