"""Joins ops to tasks, which run as one, and tasks to bundles, on one device.

Fusion makes tasks. It joins ops if a transfer between them would take longer
than the time that two devices could save. Co-placement makes bundles. It joins
ops that share large tensors but run at different times, such as an op and its
gradient. Fusion and co-placement are optimisations of Baechi (Jeon et al. 2020,
section 3.1). The criterion of fusion is older: the grain of Gerasoulis and
Yang, "On the granularity and clustering of directed acyclic task graphs", IEEE
TPDS 4(6), 1993.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import choices
from gdp_grappler.placers.list_scheduling import native_scheduler
from gdp_grappler.placers.list_scheduling import task_graph

# Rounds of fusion. Each round joins tasks forward, then backward.
_ROUNDS = 2


def fuse(tasks: task_graph.TaskGraph, link: tuple[float, float],
         grain: float) -> task_graph.TaskGraph:
  """Joins tasks with their only consumer or their only producer.

  Args:
    tasks: M tasks.
    link: Seconds of latency, and seconds per byte.
    grain: Limit for tasks that could run at the same time as other tasks. Such
      a task is joined if it takes at most `grain` times as long as the transfer
      of its results.
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
  """Joins bundles that exchange data, up to a fair share of the work.

  Bundles that exchange the most data are joined first.

  Args:
    tasks: B bundles.
    link: Seconds of latency, and seconds per byte.
    parts: A joined bundle has at most the work of all tasks over `parts`.
  """
  pairs, sent_s = tasks.pairs(*link)
  return co_place_pairs(tasks, pairs[np.argsort(-sent_s, kind='stable')], parts)


def co_place_pairs(tasks: task_graph.TaskGraph, pairs: np.ndarray,
                   parts: int) -> task_graph.TaskGraph:
  """Joins the bundles of pairs of tasks, up to a fair share of the work.

  Args:
    tasks: B bundles.
    pairs: int [E, 2], tasks whose bundles are joined, in this order.
    parts: A joined bundle has at most the work of all tasks over `parts`.
  """
  ends = tasks.bundles[pairs]
  ends = ends[ends[:, 0] != ends[:, 1]]
  by_bundle = np.bincount(tasks.bundles, work_s(tasks), tasks.num_bundles)
  labels = native_scheduler.join(ends, np.full(len(ends), -1.), by_bundle,
                                 choices.kinds(tasks.allowed),
                                 by_bundle.sum() / parts)
  return task_graph.contract(tasks, np.arange(tasks.num_tasks), labels)


def co_place_by_transfer(tasks: task_graph.TaskGraph, link: tuple[float, float],
                         grain: float) -> task_graph.TaskGraph:
  """Joins bundles if their transfer takes longer than two devices could save.

  Two devices that run two bundles at the same time save at most the time of the
  smaller bundle.

  Args:
    tasks: B bundles.
    link: Seconds of latency, and seconds per byte.
    grain: Two bundles are joined if the smaller one takes at most `grain` times
      as long as the transfer.
  """
  pairs, sent_s = tasks.pairs(*link)
  longest = np.argsort(-sent_s, kind='stable')
  by_bundle = np.bincount(tasks.bundles, work_s(tasks), tasks.num_bundles)
  labels = native_scheduler.join(tasks.bundles[pairs[longest]],
                                 grain * sent_s[longest], by_bundle,
                                 choices.kinds(tasks.allowed), -1.)
  return task_graph.contract(tasks, np.arange(tasks.num_tasks), labels)


def work_s(tasks: task_graph.TaskGraph) -> np.ndarray:
  """float64 [M], seconds of each task on its fastest allowed device."""
  return np.where(tasks.allowed[tasks.bundles], tasks.seconds,
                  np.inf).min(axis=1)
