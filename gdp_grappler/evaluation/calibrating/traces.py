"""Kernels of a card in TensorFlow's trace of a step.

If CUPTI is available, `RunOptions.FULL_TRACE` contains the driver's times of
kernels. They are records of the streams of a device, and each has the name of
the op that launched the kernel. Times are whole microseconds, rounded down.
"""

from __future__ import annotations

import collections
from typing import Any, Sequence


def kernel_seconds(session: Any, targets: Sequence[Any],
                   device: str) -> dict[str, float]:
  """Seconds of each node's kernels in one traced step; {} without records.

  Args:
    session: Session whose graph has run before.
    targets: Ops or tensors to run.
    device: End of the device's full name, such as '/device:GPU:0'.
  """
  from tensorflow.core.protobuf import config_pb2
  options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
  metadata = config_pb2.RunMetadata()
  session.run(list(targets), options=options, run_metadata=metadata)
  return of_streams(metadata.step_stats, device)


def of_streams(step_stats: Any, device: str) -> dict[str, float]:
  """Seconds of each node's kernels in the records of a device's streams."""
  nanos: collections.Counter[str] = collections.Counter()
  wanted = all_streams(device)
  for stats in step_stats.dev_stats:
    if stats.device.endswith(wanted):
      for node in stats.node_stats:
        nanos[node_name(node.node_name)] += kernel_nanos(node)
  return {name: value * 1e-9 for name, value in nanos.items()}


def kernel_nanos(record: Any) -> int:
  """Nanoseconds of the kernel of a stream's record, within half a us."""
  return 1000 * record.op_end_rel_micros + 500


def node_name(record: str) -> str:
  """The node of a record such as 'layer/Conv2D:Conv2D'."""
  return record.split(':')[0]


def all_streams(device: str) -> str:
  """The end of the name of the records of all streams of a device."""
  return f'device:{device.rsplit("device:", 1)[1]}/stream:all'
