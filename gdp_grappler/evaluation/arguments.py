"""Checks of the arguments of evaluators."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import cost_model as cost_model_lib
from gdp_grappler.graph import op_graph


def check_cluster(placement: placement_lib.Placement,
                  cluster: cluster_lib.Cluster, evaluator: str) -> None:
  """Checks that a placement is on the cluster of an evaluator.

  Args:
    placement: The placement.
    cluster: Cluster of the evaluator.
    evaluator: Name of the evaluator in the message.

  Raises:
    ValueError: the placement is on another cluster.
  """
  # Comparing the fields of two clusters takes long. Most placements have the
  # evaluator's own cluster object.
  if placement.cluster is not cluster and placement.cluster != cluster:
    raise ValueError(f'The placement is on cluster "{placement.cluster.name}", '
                     f'the {evaluator} is for "{cluster.name}".')


def checked_devices(graph: op_graph.OpGraph, devices: np.ndarray,
                    rank: int) -> np.ndarray:
  """The devices as a contiguous int32 array, [N] or [K, N].

  Args:
    graph: N ops.
    devices: int, of any width.
    rank: Number of axes, 1 or 2.

  Raises:
    ValueError: the array has another shape or no integers.
  """
  devices = np.asarray(devices)
  if devices.ndim != rank or devices.shape[-1] != graph.num_ops:
    wanted = ('K, ' if rank == 2 else '') + str(graph.num_ops)
    raise ValueError(f'devices has shape {list(devices.shape)} where '
                     f'[{wanted}] is needed for graph "{graph.name}".')
  if not np.issubdtype(devices.dtype, np.integer):
    raise ValueError(f'devices is {devices.dtype}; give integers.')
  if devices.dtype != np.int32:
    # Clipped values stay out of range, so that later checks find them. A cast
    # alone would wrap them round into the range.
    limits = np.iinfo(np.int32)
    devices = devices.clip(max(limits.min,
                               np.iinfo(devices.dtype).min),
                           min(limits.max,
                               np.iinfo(devices.dtype).max))
  return np.ascontiguousarray(devices, np.int32)


def checked_priorities(graph: op_graph.OpGraph, priorities: np.ndarray | None,
                       shape: tuple[int, ...]) -> np.ndarray | None:
  """The priorities as a contiguous float64 array of the given shape.

  Args:
    graph: N ops.
    priorities: [K, N], or [N] for all placements, or None.
    shape: Shape of the devices, [K, N] or [N].

  Raises:
    ValueError: the array has another shape, or a priority is not a number.
  """
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


def card_shares(cost_model: cost_model_lib.CostModel, graph: op_graph.OpGraph,
                cluster: cluster_lib.Cluster,
                seconds: np.ndarray) -> np.ndarray | None:
  """float64 [N, D], see `CostModel.card_shares`; None if no card is cut.

  Raises:
    ValueError: the cost model gave another shape or a share out of range.
  """
  if (cluster.cut_cards < 0).all():
    return None
  shares = np.asarray(cost_model.card_shares(graph, cluster, seconds),
                      np.float64)
  if shares.shape != seconds.shape or not ((shares > 0) & (shares <= 1)).all():
    raise ValueError('The cost model gave shares of cards that are not '
                     f'{seconds.shape}, or not above 0 and at most 1.')
  return shares
