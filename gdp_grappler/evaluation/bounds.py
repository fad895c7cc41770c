"""Lower bounds of the step time, for all placements and for one."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph

_STEPS = 200  # Iterations that improve the weights of the dual.


@dataclasses.dataclass(frozen=True)
class LowerBound:
  """Two lower bounds of the step time, both valid for every placement.

  Attributes:
    critical_path_s: Seconds of the longest path of ops, if each op is on its
      fastest allowed device and transfers take no time.
    work_s: Seconds of all work, if it could be divided at will and evenly over
      the devices.
  """

  critical_path_s: float
  work_s: float

  @property
  def seconds(self) -> float:
    """The larger one of the bounds."""
    return max(self.critical_path_s, self.work_s)


def lower_bound(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                op_seconds: np.ndarray) -> LowerBound:
  """Bounds the step time of a graph on a cluster, without regard to memory.

  Args:
    graph: N ops.
    cluster: D devices.
    op_seconds: float64 [N, D].

  Raises:
    InfeasiblePlacementError: the cluster cannot hold the graph at all.
  """
  allowed = constraints.allowed_devices(graph, cluster)
  seconds = np.where(allowed[graph.groups], op_seconds, np.inf)
  # The GPU does not do the work of an op that works on its host.
  hosts = op_details.hosts(cluster.devices)
  elsewhere = np.outer(op_details.leave_gpus(graph), hosts
                       != np.arange(len(hosts)))
  work = np.where(elsewhere & np.isfinite(seconds), 0., seconds)
  # A GPU's op hands on tensors of the host when it is dispatched, so a path
  # does not go on through such a tensor.
  waits = ~np.append(graph.made_on_host, False)[graph.edge_tensors]
  path_s = native_graph.longest_from_sources(graph.edges[waits],
                                             graph.topological_order,
                                             seconds.min(axis=1))
  return LowerBound(
      cluster.step_s + float(path_s.max(initial=0.)),
      cluster.step_s + _divided_work_s(graph.group_sums(work), cluster))


def busiest_channel_s(schedule: schedule_lib.Schedule,
                      cluster: cluster_lib.Cluster,
                      graph: op_graph.OpGraph) -> float:
  """Seconds in which the busiest channel carries data.

  This is a lower bound of the placement's step in any order of ops.

  Args:
    schedule: Schedule of a placement.
    cluster: Cluster of the placement.
    graph: The placed graph. Tensors that are empty, or that no execution
      makes, occupy no channel.
  """
  tensors = schedule.transfer_tensors
  carries = tensors >= 0  # Messages of control edges have no tensor.
  made_bytes = graph.tensor_bytes * (graph.executions[graph.tensor_ops] > 0)
  carries[carries] = made_bytes[tensors[carries]] > 0
  if not carries.any():
    return 0.
  source = schedule.transfer_sources[carries]
  target = schedule.transfer_targets[carries]
  seconds = (schedule.transfer_end_s - schedule.transfer_start_s)[carries]
  channels = cluster.link_arrays[2][source, target]
  # A link with fewer channels than other links repeats its last channel.
  used = channels >= 0
  used[:, 1:] &= channels[:, 1:] != channels[:, :-1]
  return float(
      np.bincount(channels[used],
                  np.broadcast_to(seconds[:, None],
                                  channels.shape)[used]).max(initial=0.))


def _divided_work_s(seconds: np.ndarray, cluster: cluster_lib.Cluster) -> float:
  """Least seconds in which compute units could do all work, if divisible.

  The linear programme min T, in which every group g is divided over units u,
  x[g, u] >= 0, sum_u x[g, u] = 1, sum_g x[g, u] seconds[g, u] <= T slots[u],
  has the dual max over w >= 0 with sum_u w[u] slots[u] = 1 of
  sum_g min_u w[u] seconds[g, u]. Every w gives a bound; w is improved by
  multiplicative steps (Plotkin, Shmoys and Tardos 1995) and the best counts.

  Args:
    seconds: float64 [G, D].
    cluster: D devices.
  """
  units = cluster.compute_units
  count = units.max() + 1
  by_unit = np.full((len(seconds), count), np.inf)
  slots = np.zeros(count)
  for device, unit in enumerate(units):
    by_unit[:, unit] = np.minimum(by_unit[:, unit], seconds[:, device])
    slots[unit] = max(slots[unit], cluster.devices[device].slots)
  by_unit, slots, repeats = _without_repetition(by_unit, slots)
  weights = np.ones(len(slots)) / slots.sum()
  rows = np.arange(len(by_unit))
  best = 0.
  for step in range(_STEPS):
    priced = by_unit * weights
    chosen = priced.argmin(axis=1)
    best = max(best, float((priced[rows, chosen] * repeats).sum()))
    load = np.bincount(chosen, by_unit[rows, chosen] * repeats,
                       len(slots)) / slots
    if not load.any():
      break
    # Raise the weight of a unit that attracts too much work.
    weights *= np.exp(load / load.max() / np.sqrt(step + 1))
    weights /= (weights * slots).sum()
  return best


def _without_repetition(
    seconds: np.ndarray,
    slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Merges equal rows and columns: layers repeat, and cards are alike.

  Returns:
    Seconds of distinct groups on distinct units, the sum of the slots of equal
    units, and how often each row occurs.
  """
  # Columns are compared by their bytes, because sorting them takes seconds.
  number: dict[bytes, int] = {}
  kinds = [number.setdefault(c.tobytes(), len(number)) for c in seconds.T]
  seconds = seconds[:, np.unique(kinds, return_index=True)[1]]
  slots = np.bincount(kinds, slots)
  # `np.unique` takes ten times as long for rows.
  seconds = seconds[np.lexsort(seconds.T[::-1])]
  begins = np.ones(len(seconds), bool)
  begins[1:] = (seconds[1:] != seconds[:-1]).any(axis=1)
  repeats = np.diff(np.append(np.flatnonzero(begins), len(seconds)))
  return seconds[begins], slots, repeats.astype(float)
