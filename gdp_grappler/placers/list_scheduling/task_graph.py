"""The input of list schedulers: tasks, in bundles that get one device each."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import choices
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True, eq=False)
class TaskGraph:
  """M tasks; the ops of a task run one after the other on one device.

  Tasks exchange T tensors. A tensor of 0 bytes stands for control edges. Tasks
  form no cycle. Each of B bundles of tasks gets one device. Bundles may form
  cycles: a step reads a variable first and assigns the variable last.

  Attributes:
    op_tasks: int32 [N], the task of each op.
    seconds: float64 [M, D], seconds of each task on each device.
    tensor_tasks: int32 [T], the task that computes each tensor.
    tensor_bytes: int64 [T], bytes of each tensor.
    uses: int32 [U, 2], pairs of a tensor and another task that needs the
      tensor, sorted by tensor.
    group_bundles: int32 [G], the bundle of each group of ops.
    bundles: int32 [M], the bundle of each task.
    allowed: bool [B, D], devices that a bundle may have.
  """

  op_tasks: np.ndarray
  seconds: np.ndarray
  tensor_tasks: np.ndarray
  tensor_bytes: np.ndarray
  uses: np.ndarray
  group_bundles: np.ndarray
  bundles: np.ndarray
  allowed: np.ndarray

  @property
  def num_tasks(self) -> int:
    """M, the number of tasks."""
    return len(self.seconds)

  @property
  def num_bundles(self) -> int:
    """B, the number of bundles."""
    return len(self.allowed)

  def bundle_sums(self, by_group: np.ndarray) -> np.ndarray:
    """[B], sums over the groups of each bundle.

    Args:
      by_group: [G], numbers of groups, such as bytes.
    """
    return np.bincount(self.group_bundles, by_group, self.num_bundles)

  def pairs(self, latency_s: float,
            s_per_byte: float) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of tasks that exchange tensors, and the seconds of the transfers.

    Args:
      latency_s: Seconds per tensor.
      s_per_byte: Seconds per byte.

    Returns:
      int32 [E, 2], producers and consumers, sorted by producer, then consumer.
      float64 [E], seconds of all transfers of each pair.
    """
    producers = self.tensor_tasks[self.uses[:, 0]].astype(np.int64)
    keys, where = np.unique(producers * self.num_tasks + self.uses[:, 1],
                            return_inverse=True)
    sent_s = latency_s + self.tensor_bytes[self.uses[:, 0]] * s_per_byte
    pairs = np.stack(np.divmod(keys, max(1, self.num_tasks)), axis=1)
    return pairs.astype(np.int32), np.bincount(where, sent_s, len(keys))


def from_graph(graph: op_graph.OpGraph, seconds: np.ndarray,
               allowed: np.ndarray) -> TaskGraph:
  """One task per op and one bundle per group.

  Args:
    graph: N ops in G groups.
    seconds: float64 [N, D], seconds of ops (`Problem.busy_seconds`).
    allowed: bool [G, D], devices that each group may have.
  """
  n = graph.num_ops
  alive = graph.executions > 0
  # One tensor of 0 bytes per op stands for the control edges of the op.
  tensors = np.where(graph.edge_tensors < 0,
                     len(graph.tensor_ops) + graph.edges[:, 0],
                     graph.edge_tensors)
  makers = np.concatenate([graph.tensor_ops, np.arange(n, dtype=np.int32)])
  size = np.concatenate(
      [graph.tensor_bytes * alive[graph.tensor_ops],
       np.zeros(n, np.int64)])
  makers, size, uses = _compact(makers, size, tensors, graph.edges[:, 1])
  return TaskGraph(np.arange(n, dtype=np.int32), np.asarray(seconds, float),
                   makers, size, uses,
                   np.arange(graph.num_groups,
                             dtype=np.int32), graph.groups, allowed)


def contract(tasks: TaskGraph, labels: np.ndarray,
             group_labels: np.ndarray) -> TaskGraph:
  """Joins tasks to larger tasks, and bundles to larger bundles.

  Args:
    tasks: M tasks, B bundles.
    labels: int [M], tasks with the same number become one task. The new tasks
      must form no cycle.
    group_labels: int [B], bundles with the same number become one bundle. If
      tasks become one task, their bundles must become one bundle.
  """
  _, joined = np.unique(labels, return_inverse=True)
  labels, joined_bundles = np.unique(group_labels, return_inverse=True)
  seconds = np.stack(
      [np.bincount(joined, column) for column in tasks.seconds.T], axis=1)
  makers, size, uses = _compact(joined[tasks.tensor_tasks], tasks.tensor_bytes,
                                tasks.uses[:, 0], joined[tasks.uses[:, 1]])
  bundles = np.empty(len(seconds), np.int32)
  bundles[joined] = joined_bundles[tasks.bundles]
  return TaskGraph(joined[tasks.op_tasks].astype(np.int32), seconds, makers,
                   size, uses,
                   joined_bundles[tasks.group_bundles].astype(np.int32),
                   bundles,
                   choices.of_all(tasks.allowed, joined_bundles, len(labels)))


def _compact(
    makers: np.ndarray, size: np.ndarray, tensors: np.ndarray,
    consumers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Keeps the tensors that other tasks use, and removes double uses.

  Returns:
    int32 [T], the task that computes each tensor that is kept; int64 [T], its
    bytes; int32 [U, 2], uses, as in `TaskGraph`.
  """
  leaves = makers[tensors] != consumers
  span = int(consumers.max(initial=0)) + 1
  # np.unique hashes, which takes longer than sorting for such keys.
  keys = np.sort(tensors[leaves].astype(np.int64) * span + consumers[leaves])
  keys = keys[np.diff(keys, prepend=-1) > 0]
  tensors, consumers = np.divmod(keys, span)
  first = np.diff(tensors, prepend=-1) > 0
  kept, renumbered = tensors[first], np.cumsum(first) - 1
  uses = np.stack([renumbered, consumers], axis=1).astype(np.int32)
  return makers[kept].astype(np.int32), size[kept].astype(np.int64), uses
