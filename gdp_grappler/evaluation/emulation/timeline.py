"""The events of an emulated step and their times."""

from __future__ import annotations

import dataclasses

import numpy as np

# The columns of the records of the native library (`timelines.h`).
(_KIND, _DEVICE, _PEER, _STREAM, _OP, _BYTES, _ENQUEUED, _START,
 _END) = range(9)
NUM_COLUMNS = 9  # Of a record: the fields above.
# Kinds of records.
_KERNEL, _COPY = range(2)
_NANOSECONDS = 1e9  # In a second.


@dataclasses.dataclass(frozen=True, eq=False)
class Timeline:
  """A step of N ops and M copies, in seconds since its start.

  Copies are in the order in which TensorFlow enqueued them. Numbers of streams
  are unique over all devices.

  Attributes:
    op_enqueued_s: float64 [N], time at which TensorFlow enqueued each op.
    op_start_s: float64 [N], start of each op.
    op_end_s: float64 [N], end of each op.
    op_streams: int64 [N], stream of each op; -1 on the host.
    copy_ops: int64 [M], op whose output is copied; -1 for copies that
      TensorFlow makes by itself.
    copy_sources: int64 [M], index of the sending device in the cluster.
    copy_targets: int64 [M], index of the receiving device in the cluster.
    copy_streams: int64 [M], stream of each copy.
    copy_bytes: int64 [M], size of each copy.
    copy_enqueued_s: float64 [M], time at which TensorFlow enqueued each copy.
    copy_start_s: float64 [M], start of each copy.
    copy_end_s: float64 [M], end of each copy.
  """

  op_enqueued_s: np.ndarray
  op_start_s: np.ndarray
  op_end_s: np.ndarray
  op_streams: np.ndarray
  copy_ops: np.ndarray
  copy_sources: np.ndarray
  copy_targets: np.ndarray
  copy_streams: np.ndarray
  copy_bytes: np.ndarray
  copy_enqueued_s: np.ndarray
  copy_start_s: np.ndarray
  copy_end_s: np.ndarray

  @property
  def step_time_s(self) -> float:
    """End of the last op or copy."""
    return float(
        max(self.op_end_s.max(initial=0.), self.copy_end_s.max(initial=0.)))


def from_records(records: np.ndarray, begin_ns: int, num_ops: int,
                 devices: np.ndarray) -> Timeline:
  """Makes a timeline of the records of the native library.

  Args:
    records: int64 [R, `NUM_COLUMNS`].
    begin_ns: Start of the step on the emulated clock.
    num_ops: N.
    devices: int [D], index in the cluster of each device of the native library.
  """
  kinds = records[:, _KIND]
  ops, copies = (records[kinds == kind] for kind in (_KERNEL, _COPY))
  rows = np.zeros((num_ops, NUM_COLUMNS), np.int64)
  rows[:, [_ENQUEUED, _START, _END]] = begin_ns
  rows[ops[:, _OP]] = ops

  def seconds(of: np.ndarray, column: int) -> np.ndarray:
    return (of[:, column] - begin_ns) / _NANOSECONDS

  return Timeline(seconds(rows, _ENQUEUED), seconds(rows, _START),
                  seconds(rows, _END), rows[:, _STREAM], copies[:, _OP],
                  devices[copies[:, _DEVICE]], devices[copies[:, _PEER]],
                  copies[:, _STREAM], copies[:, _BYTES],
                  seconds(copies, _ENQUEUED), seconds(copies, _START),
                  seconds(copies, _END))
