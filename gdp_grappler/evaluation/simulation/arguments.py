"""Checks of what a simulator is asked to price."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import op_graph


def checked_devices(graph: op_graph.OpGraph, devices: np.ndarray,
                    rank: int) -> np.ndarray:
  """Contiguous int32, of `rank` axes whose last is N."""
  devices = np.asarray(devices)
  if devices.ndim != rank or devices.shape[-1] != graph.num_ops:
    wanted = ('K, ' if rank == 2 else '') + str(graph.num_ops)
    raise ValueError(f'devices has shape {list(devices.shape)} where '
                     f'[{wanted}] is needed for graph "{graph.name}".')
  if not np.issubdtype(devices.dtype, np.integer):
    raise ValueError(f'devices is {devices.dtype}; give integers.')
  if devices.dtype != np.int32:
    # What does not fit stays out of range instead of wrapping round.
    limits = np.iinfo(np.int32)
    devices = devices.clip(max(limits.min,
                               np.iinfo(devices.dtype).min),
                           min(limits.max,
                               np.iinfo(devices.dtype).max))
  return np.ascontiguousarray(devices, np.int32)


def checked_priorities(graph: op_graph.OpGraph, priorities: np.ndarray | None,
                       shape: tuple[int, ...]) -> np.ndarray | None:
  """Contiguous float64 of the shape of the devices, [K, N] or [N]."""
  if priorities is None:
    return None
  priorities = np.asarray(priorities, np.float64)
  if priorities.shape not in (shape, shape[-1:]):
    wanted = ', '.join(map(str, shape))
    raise ValueError(f'priorities has shape {list(priorities.shape)} where '
                     f'[{wanted}] is needed for graph "{graph.name}".')
  wrong = np.argwhere(np.isnan(priorities))
  if wrong.size:
    raise ValueError(
        f'The priority of op "{graph.label(wrong[0, -1])}" is not a number; '
        'give it one, or None for all for first in, first out.')
  return np.ascontiguousarray(np.broadcast_to(priorities, shape))
