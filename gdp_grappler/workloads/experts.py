"""How human experts place the workloads, on any number of devices.

A stage is what a person would put on a device as a whole: a layer with its
gradients, weights and optimizer slots (`stages.of`). The rules say what people
want, not what TensorFlow allows: an op without a kernel on its device is for
others to move.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph


def single_device(graph: op_graph.OpGraph, stages: np.ndarray,
                  cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
  """Everything on the accelerator that computes all of it fastest.

  So do HDP's authors with Inception-V3 and ResNet, which fit on one GPU.

  Args:
    graph: N ops.
    stages: int [N].
    cluster: D devices.
    seconds: float [N, D], what each op takes on each device.

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
  """Each stage on a device of its own.

  Wu et al. 2016 (section 3.3; GDP's appendix has it as the human placement of
  RNNLM and GNMT): one LSTM layer per GPU, attention and softmax on theirs.
  Where devices are fewer, the experts of Mirhoseini et al. 2017 (section 4.1)
  put some stages together: the embedding with the first layer, attention and
  softmax with the last. Where they are fewer still, every device gets a
  contiguous block of as many stages as the next, the last ones one more.

  Args:
    graph: N ops.
    stages: int [N].
    cluster: D devices.
    seconds: float [N, D], what each op takes on each device; not looked at.
    joined: How to put stages together if need be, from less to more: each
      names the unit of every stage, and stages of one unit share a device.
      Those of the last are divided into blocks.

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
  """Contiguous blocks of stages, the most expensive one as cheap as can be.

  GDP's experts place Transformer-XL, WaveNet and AmoebaNet so. What a block
  costs is what its ops take on the device it is for, and devices are in the
  cluster's order. Of all divisions with the cheapest dearest block, the one
  with the least sum of squares.

  Args:
    graph: N ops.
    stages: int [N].
    cluster: D devices.
    seconds: float [N, D], what each op takes on each device.

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
  """int [U], the block of each unit: equal numbers, the last ones one more."""
  if num_units <= num_devices:
    return np.arange(num_units)
  size, more = divmod(num_units, num_devices)
  sizes = [size] * (num_devices - more) + [size + 1] * more
  return np.repeat(np.arange(num_devices), sizes)


def _equal_blocks(costs: np.ndarray) -> np.ndarray:
  """int [S], the device of each stage, for costs [D, S] of a stage there."""
  sums = np.cumsum(np.pad(costs, ((0, 0), (1, 0))), axis=1)
  # [D, S + 1, S + 1], costs of the blocks from one stage to before another.
  blocks = np.maximum(sums[:, None, :] - sums[:, :, None], 0.)
  blocks[:, np.tri(costs.shape[1] + 1, k=-1, dtype=bool)] = np.inf
  dearest, _ = _best_division(blocks, np.maximum)
  affordable = blocks <= dearest * (1 + 1e-9)
  _, ends = _best_division(np.where(affordable, blocks**2, np.inf), np.add)
  return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _best_division(blocks: np.ndarray,
                   joined: np.ufunc) -> tuple[float, list[int]]:
  """The least price of dividing all stages, and where blocks end [D].

  Dynamic programming over devices and stages.

  Args:
    blocks: [D, S + 1, S + 1], price of the block [start, end) on a device.
    joined: How prices of blocks make that of a division.
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
