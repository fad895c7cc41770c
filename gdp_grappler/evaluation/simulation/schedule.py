"""The events of a simulated step and their times."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule:
  """A simulated step of N ops, M transfers and Q changes of memory.

  A device without copy engines computes for each of its transfers. W counts
  these pieces of work.

  Attributes:
    step_time_s: When the last op ends; `Cluster.step_s` if there is none.
    peak_bytes: int64 [P], highest use of each memory pool.
    start_s: float64 [N], when each op starts.
    end_s: float64 [N], when each op ends.
    slots: int32 [N], which slot of its compute unit each op fills: the lowest
      that is free.
    transfer_tensors: int32 [M], tensor sent; -1 for a control edge. Transfers
      are in the order of their requests.
    transfer_ops: int32 [M], op that made it.
    transfer_sources: int32 [M], sending device.
    transfer_targets: int32 [M], receiving device.
    transfer_start_s: float64 [M].
    transfer_end_s: float64 [M].
    work_transfers: int32 [W], index of the transfer, in increasing order; the
      sender's work comes before the receiver's.
    work_devices: int32 [W], the sending or the receiving device.
    work_slots: int32 [W], which slot of its compute unit the work fills.
    work_start_s: float64 [W].
    work_end_s: float64 [W].
    memory_s: float64 [Q], when a pool's use changes, in order of time; every
      pool has a point at 0.
    memory_pools: int32 [Q], the pool.
    memory_bytes: int64 [Q], its use from then on.
  """

  step_time_s: float
  peak_bytes: np.ndarray
  start_s: np.ndarray
  end_s: np.ndarray
  slots: np.ndarray
  transfer_tensors: np.ndarray
  transfer_ops: np.ndarray
  transfer_sources: np.ndarray
  transfer_targets: np.ndarray
  transfer_start_s: np.ndarray
  transfer_end_s: np.ndarray
  work_transfers: np.ndarray
  work_devices: np.ndarray
  work_slots: np.ndarray
  work_start_s: np.ndarray
  work_end_s: np.ndarray
  memory_s: np.ndarray
  memory_pools: np.ndarray
  memory_bytes: np.ndarray
