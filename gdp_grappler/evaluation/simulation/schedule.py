"""The events of a simulated step and their times."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule:
  """A simulated step of N ops, M transfers and Q changes of memory.

  A device without copy engines computes for each of its transfers. W is the
  number of these pieces of work. All times are seconds since the start of the
  step.

  Attributes:
    step_time_s: End of the step; `Cluster.step_s` if there are no ops.
    peak_bytes: int64 [P], highest use of each memory pool.
    start_s: float64 [N], start of each op.
    end_s: float64 [N], end of each op.
    dispatched_s: float64 [N], when a thread has dispatched each op to an
      asynchronous device; the start of each op on another device.
    devices: int32 [N], device on which each op works. This is not the device of
      the placement if the op works on the host of its GPU, see
      `op_details.leave_gpus`.
    slots: int32 [N], slot of its compute unit that each op fills, the lowest
      free one; 0 for ops that a thread dispatches to an asynchronous device.
    transfer_tensors: int32 [M], tensor sent; -1 for a control edge. Transfers
      are in the order of their requests.
    transfer_ops: int32 [M], op whose output is sent.
    transfer_sources: int32 [M], sending device.
    transfer_targets: int32 [M], receiving device.
    transfer_start_s: float64 [M], start of each transfer.
    transfer_end_s: float64 [M], end of each transfer.
    work_transfers: int32 [W], index of the transfer, in increasing order. The
      sender's work comes before the receiver's.
    work_devices: int32 [W], the sending or the receiving device.
    work_slots: int32 [W], slot of its compute unit that the work fills.
    work_start_s: float64 [W], start of the work.
    work_end_s: float64 [W], end of the work.
    memory_s: float64 [Q], times at which the use of a pool changes, ascending.
      Every pool has a point at 0.
    memory_pools: int32 [Q], the pool.
    memory_bytes: int64 [Q], use of the pool from this time on.
  """

  step_time_s: float
  peak_bytes: np.ndarray
  start_s: np.ndarray
  end_s: np.ndarray
  dispatched_s: np.ndarray
  devices: np.ndarray
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
