"""Simple versions of ETF and HEFT, in which transfers do not queue."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.placers.list_scheduling import task_graph


class ReferenceScheduler:
  """A scheduler without limits of memory; a device runs one task at a time."""

  def __init__(self, tasks: task_graph.TaskGraph, cluster: cluster_lib.Cluster):
    self.tasks = tasks
    self.latency_s, self.bytes_per_s, _ = cluster.link_arrays
    self.inputs = [[] for _ in range(tasks.num_tasks)]
    for tensor, consumer in tasks.uses.tolist():
      self.inputs[consumer].append((int(tasks.tensor_tasks[tensor]),
                                    int(tasks.tensor_bytes[tensor]), tensor))
    self.sent = set()
    self.order = self._topological_order()
    self.device = {}
    self.start_s = {}
    self.end_s = {}
    self.busy = [[] for _ in cluster.devices]
    self.bundle_device = {}

  def _topological_order(self) -> list[int]:
    waiting = [len(inputs) for inputs in self.inputs]
    order = [task for task, count in enumerate(waiting) if not count]
    for task in order:
      for tensor in np.flatnonzero(self.tasks.tensor_tasks == task):
        for consumer in self.tasks.uses[self.tasks.uses[:, 0] == tensor, 1]:
          waiting[consumer] -= 1
          if not waiting[consumer]:
            order.append(int(consumer))
    return order

  def ranks(self) -> np.ndarray:
    """float64 [M], Topcuoglu et al. 2002, equation 4."""
    count = len(self.busy)
    apart = ~np.eye(count, dtype=bool)
    latency_s = self.latency_s[apart].mean() if count > 1 else 0
    s_per_byte = (1 / self.bytes_per_s[apart]).mean() if count > 1 else 0
    result = np.zeros(self.tasks.num_tasks)
    for task in reversed(self.order):
      mean = self.tasks.seconds[task][self.tasks.allowed[
          self.tasks.bundles[task]]].mean()
      result[task] += mean
      for producer, size, _ in self.inputs[task]:
        result[producer] = max(result[producer],
                               latency_s + size * s_per_byte + result[task])
    return result

  def by_rank(self) -> list[int]:
    """Returns the tasks, the most urgent one first."""
    ranks = self.ranks()
    return sorted(self.order, key=lambda task: -ranks[task])

  def choices(self, task: int) -> list[int]:
    """Returns the devices that a task may have."""
    bundle = int(self.tasks.bundles[task])
    if bundle in self.bundle_device:
      return [self.bundle_device[bundle]]
    return np.flatnonzero(self.tasks.allowed[bundle]).tolist()

  def arrival(self, task: int, device: int) -> tuple[float, float]:
    """Returns the arrival of all inputs, and the seconds of new transfers."""
    time_s = remote_s = 0.
    for producer, size, tensor in self.inputs[task]:
      source = self.device[producer]
      sent_s = 0.
      if source != device:
        sent_s = (self.latency_s[source, device]
                  + size / self.bytes_per_s[source, device])
      time_s = max(time_s, self.end_s[producer] + sent_s)
      remote_s += sent_s * ((tensor, device) not in self.sent)
    return time_s, remote_s

  def put(self, task: int, device: int, start_s: float) -> None:
    """Runs a task."""
    self.bundle_device[int(self.tasks.bundles[task])] = device
    self.sent.update((tensor, device) for _, _, tensor in self.inputs[task])
    self.device[task] = device
    self.start_s[task] = start_s
    self.end_s[task] = start_s + self.tasks.seconds[task, device]
    self.busy[device].append((start_s, self.end_s[task]))
    self.busy[device].sort()

  def earliest_task_first(self) -> None:
    """Places all tasks by ETF."""
    left = self.by_rank()
    while left:
      ready = [
          task for task in left
          if all(p in self.device for p, _, _ in self.inputs[task])
      ]
      options = []
      for urgency, task in enumerate(left):
        for device in self.choices(task) if task in ready else ():
          free_s = max((end for _, end in self.busy[device]), default=0.)
          arrival_s, remote_s = self.arrival(task, device)
          options.append((max(free_s,
                              arrival_s), urgency, remote_s, device, task))
      start_s, _, _, device, task = min(options)
      self.put(task, device, start_s)
      left.remove(task)

  def heft(self) -> None:
    """Places all tasks by HEFT."""
    for task in self.by_rank():
      options = []
      same = self.tasks.bundles == self.tasks.bundles[task]
      for device in self.choices(task):
        start_s = self._gap(device,
                            self.arrival(task, device)[0],
                            self.tasks.seconds[task, device])
        options.append(
            (start_s + self.tasks.seconds[same, device].sum(), device, start_s))
      _, device, start_s = min(options)
      self.put(task, device, start_s)

  def _gap(self, device, ready_s, length_s) -> float:
    for start_s, end_s in self.busy[device]:
      if ready_s + length_s <= start_s:
        break
      ready_s = max(ready_s, end_s)
    return ready_s
