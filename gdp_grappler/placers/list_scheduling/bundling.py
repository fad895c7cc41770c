"""Which ops are scheduled as one task, and which tasks share a device.

Fusion makes tasks: sending between ops that are joined would cost more than
running them side by side gains. Co-placement makes bundles: ops that are far
apart in time but share large tensors, such as an op and its gradient. Both are
optimisations of Baechi (Jeon et al. 2020, section 3.1); grain packing is older
(Gerasoulis and Yang, "On the granularity and clustering of directed acyclic
task graphs", IEEE TPDS 4(6), 1993).
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import choices
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import task_graph

_ROUNDS = 2


def mean_link(cluster: cluster_lib.Cluster,
              devices: np.ndarray) -> tuple[float, float]:
  """Seconds of latency and per byte, over the links between some devices.

  Args:
    cluster: D devices.
    devices: int, those that count; zeros for fewer than two.
  """
  latency_s, bytes_per_s = cluster.link_arrays[:2]
  if len(devices) < 2:
    return 0., 0.
  between = np.ix_(devices, devices)
  count = len(devices) * (len(devices) - 1)
  return (float(latency_s[between].sum() / count),
          float((1 / bytes_per_s[between]).sum() / count))


def fuse(tasks: task_graph.TaskGraph, link: tuple[float, float],
         grain: float) -> task_graph.TaskGraph:
  """Joins tasks with their only consumer or their only producer.

  Args:
    tasks: M tasks.
    link: Seconds of latency and per byte.
    grain: How many times longer than sending its results may a task run that
      is joined although it could run beside others.
  """
  for _ in range(_ROUNDS):
    for backward in (False, True):
      tasks = _fuse_once(tasks, link, grain, backward)
  return tasks


def _fuse_once(tasks: task_graph.TaskGraph, link: tuple[float, float],
               grain: float, backward: bool) -> task_graph.TaskGraph:
  pairs, sent_s = tasks.pairs(*link)
  position = np.empty(tasks.num_tasks, np.int64)
  position[native_scheduler.topological_order(tasks)] = np.arange(
      tasks.num_tasks)
  if backward:
    pairs, position = pairs[:, ::-1], -position
  order = np.argsort(position[pairs[:, 0]], kind='stable')
  labels = native_scheduler.fuse(pairs[order], sent_s[order], work_s(tasks),
                                 choices.kinds(tasks.allowed)[tasks.bundles],
                                 grain)
  if (labels == np.arange(tasks.num_tasks)).all():
    return tasks
  joined = np.stack([tasks.bundles, tasks.bundles[labels]], axis=1)
  bundles = native_scheduler.join(joined, np.zeros(len(joined)),
                                  np.zeros(tasks.num_bundles),
                                  np.zeros(tasks.num_bundles), np.inf)
  return task_graph.contract(tasks, labels, bundles)


def co_place(tasks: task_graph.TaskGraph, link: tuple[float, float],
             parts: int) -> task_graph.TaskGraph:
  """Bundles that send each other most share a device, up to a fair part.

  Args:
    tasks: B bundles.
    link: Seconds of latency and per byte.
    parts: A bundle may have that part of all work, unless it had more before.
  """
  pairs, sent_s = tasks.pairs(*link)
  return co_place_pairs(tasks, pairs[np.argsort(-sent_s, kind='stable')], parts)


def co_place_pairs(tasks: task_graph.TaskGraph, pairs: np.ndarray,
                   parts: int) -> task_graph.TaskGraph:
  """Bundles of tasks share a device, up to a fair part.

  Args:
    tasks: B bundles.
    pairs: int [E, 2], tasks to bring together, in this order.
    parts: A bundle may have that part of all work, unless it had more before.
  """
  ends = tasks.bundles[pairs]
  ends = ends[ends[:, 0] != ends[:, 1]]
  by_bundle = np.bincount(tasks.bundles, work_s(tasks), tasks.num_bundles)
  labels = native_scheduler.join(ends, np.full(len(ends), -1.), by_bundle,
                                 choices.kinds(tasks.allowed),
                                 by_bundle.sum() / parts)
  return task_graph.contract(tasks, np.arange(tasks.num_tasks), labels)


def co_place_dear(tasks: task_graph.TaskGraph, link: tuple[float, float],
                  grain: float) -> task_graph.TaskGraph:
  """Bundles share a device where it takes longer to send than it can save.

  Running two bundles side by side saves at most what the smaller one takes.

  Args:
    tasks: B bundles.
    link: Seconds of latency and per byte.
    grain: How many times longer than sending may the smaller one take.
  """
  pairs, sent_s = tasks.pairs(*link)
  dearest = np.argsort(-sent_s, kind='stable')
  by_bundle = np.bincount(tasks.bundles, work_s(tasks), tasks.num_bundles)
  labels = native_scheduler.join(tasks.bundles[pairs[dearest]],
                                 grain * sent_s[dearest], by_bundle,
                                 choices.kinds(tasks.allowed), -1.)
  return task_graph.contract(tasks, np.arange(tasks.num_tasks), labels)


def work_s(tasks: task_graph.TaskGraph) -> np.ndarray:
  """float64 [M], on the fastest device that may be used."""
  return np.where(tasks.allowed[tasks.bundles], tasks.seconds,
                  np.inf).min(axis=1)
