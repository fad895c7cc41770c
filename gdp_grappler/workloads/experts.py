"""Placements of the workloads by human experts, on any number of devices.

A stage is a part that a person would put on one device as a whole: a layer with
its gradients, weights and optimizer slots (`stages.of`). The rules ignore
TensorFlow's restrictions: callers have to move ops without a kernel on their
device.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph


def single_device(graph: op_graph.OpGraph, stages: np.ndarray,
                  cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
  """Puts all ops on the accelerator with the fewest seconds for all of them.

  HDP's authors place Inception-V3 and ResNet in this way, because they fit on
  one GPU.

  Args:
    graph: N ops.
    stages: int [N], stage of each op; not used.
    cluster: D devices.
    seconds: float [N, D], seconds of each op on each device.

  Returns:
    int [N], devices.
  """
  del stages
  places = cluster.accelerators
  best = places[int(seconds[:, list(places)].sum(axis=0).argmin())]
  return np.full(graph.num_ops, best)


def stage_per_device(graph: op_graph.OpGraph, stages: np.ndarray,
                     cluster: cluster_lib.Cluster, seconds: np.ndarray, *,
                     joined: Sequence[Sequence[int]] = ()) -> np.ndarray:
  """Puts each stage on its own device.

  Wu et al. 2016 (section 3.3; according to GDP's appendix the human placement
  of RNNLM and GNMT) use one GPU per LSTM layer, and others for attention and
  softmax. If there are fewer devices, some stages are joined as by the experts
  of Mirhoseini et al. 2017 (section 4.1): the embedding with the first layer,
  attention and softmax with the last. If there are still fewer devices, each
  gets a block of consecutive stages. Blocks have equal numbers of stages, or
  the last ones have one more.

  Args:
    graph: N ops; not used.
    stages: int [N], stage of each op.
    cluster: D devices.
    seconds: float [N, D], seconds of each op on each device; not used.
    joined: Ways to join stages if there are too few devices, from fewer to more
      joined stages. Each has the unit of every stage, and stages of one unit
      share a device. Units of the last way are divided into blocks if needed.

  Returns:
    int [N], devices.
  """
  del graph, seconds
  places = np.array(cluster.accelerators)
  units = stages
  for unit_of_stage in joined:
    if len(np.unique(units)) <= len(places):
      break
    units = np.asarray(unit_of_stage)[stages]
  present, ranks = np.unique(units, return_inverse=True)
  return places[_blocks(len(present), len(places))[ranks]]


def equal_blocks(graph: op_graph.OpGraph, stages: np.ndarray,
                 cluster: cluster_lib.Cluster,
                 seconds: np.ndarray) -> np.ndarray:
  """Divides stages into blocks, and minimizes the cost of the largest block.

  Blocks have consecutive stages. GDP's experts place Transformer-XL, WaveNet
  and AmoebaNet in this way. The cost of a block is the sum of its ops' seconds
  on its device. Devices are in the order of the cluster. Several divisions may
  have the same cost of the largest block. Then the one with the least sum of
  squares is taken.

  Args:
    graph: N ops; not used.
    stages: int [N], stage of each op.
    cluster: D devices.
    seconds: float [N, D], seconds of each op on each device.

  Returns:
    int [N], devices.
  """
  del graph
  places = cluster.accelerators
  present, ranks = np.unique(stages, return_inverse=True)
  costs = np.stack(
      [np.bincount(ranks, seconds[:, place], len(present)) for place in places])
  return np.array(places)[_equal_blocks(costs)[ranks]]


def _blocks(num_units: int, num_devices: int) -> np.ndarray:
  """Divides units into blocks of nearly equal sizes, int [U]."""
  if num_units <= num_devices:
    return np.arange(num_units)
  size, more = divmod(num_units, num_devices)
  sizes = [size] * (num_devices - more) + [size + 1] * more
  return np.repeat(np.arange(num_devices), sizes)


def _equal_blocks(costs: np.ndarray) -> np.ndarray:
  """Returns the device of each stage, int [S], for costs [D, S]."""
  sums = np.cumsum(np.pad(costs, ((0, 0), (1, 0))), axis=1)
  # [D, S + 1, S + 1], costs of blocks from one stage up to, without, another.
  blocks = np.maximum(sums[:, None, :] - sums[:, :, None], 0.)
  blocks[:, np.tri(costs.shape[1] + 1, k=-1, dtype=bool)] = np.inf
  dearest, _ = _best_division(blocks, np.maximum)
  affordable = blocks <= dearest * (1 + 1e-9)
  _, ends = _best_division(np.where(affordable, blocks**2, np.inf), np.add)
  return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _best_division(blocks: np.ndarray,
                   joined: np.ufunc) -> tuple[float, list[int]]:
  """Returns the least cost of a division of all stages, and ends of blocks [D].

  Dynamic programming over devices and stages.

  Args:
    blocks: [D, S + 1, S + 1], cost of the block [start, end) on a device.
    joined: Function that joins the costs of blocks to the cost of a division.
  """
  last = blocks.shape[1] - 1
  least, starts = blocks[0, 0], []
  for of_device in blocks[1:]:
    prices = joined(least[:, None], of_device)
    starts.append(prices.argmin(axis=0))
    least = prices.min(axis=0)
  ends = [last]
  for start in reversed(starts):
    ends.append(int(start[ends[-1]]))
  return float(least[last]), ends[::-1]
