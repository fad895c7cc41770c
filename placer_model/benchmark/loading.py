"""Loads a task, and passes it to the processes of its cells as a file."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import pathlib
import pickle
from typing import Any, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import max_memory
from gdp_grappler.cluster import resolve
from gdp_grappler.evaluation import bounds
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.problems import reading
from gdp_grappler.problems import request as request_lib
from gdp_grappler.problems import rewards
from placer_model.benchmark import placer_sets
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

# Fields that change the price of a placement without changing its graph's
# fingerprint.
_PRICED = ('tensor_ops', 'flops', 'io_bytes', 'groups', 'allowed_types',
           'user_pins', 'executions', 'stateful', 'same_numbers', 'rounds',
           'element_types', 'works_on_host', 'made_on_host', 'read_on_host')


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
  """A task's graph, with the data that its cells need.

  Attributes:
    task: The task.
    graph: Graph of N ops.
    cluster: Cluster of D devices.
    cost_model: Cost model, if the graph has costs or there is a profile; None
      for the roofline.
    expert_devices: int32 [N], placement by an expert; None if unknown.
    bound: Lower bound of the simulated step; None if steps are not simulated.
    source: Serialized MetaGraphDef to measure; None if nothing is measured.
    setting: One line on the workload; '' for other graphs.
    paper_ops: Number of ops as the paper counts them; 0 if unknown.
  """

  task: tasks_lib.Task
  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  cost_model: Any = None
  expert_devices: np.ndarray | None = None
  bound: bounds.LowerBound | None = None
  source: bytes | None = None
  setting: str = ''
  paper_ops: int = 0

  @property
  def digest(self) -> str:
    """16 hex digits that depend on everything that prices depend on."""
    graph, cluster, costs = self.graph, self.cluster, self.cost_model
    texts = '\0'.join(graph.pins), str(graph.may_round), cluster.to_json()
    arrays = []
    if self.expert_devices is not None:
      arrays.append(self.expert_devices)
    if costs is not None:
      contention = costs.contention(cluster)
      arrays += [
          costs.op_seconds(graph, cluster),
          costs.workspace_bytes(graph, cluster), contention.buses,
          contention.shares
      ]
    parts = (graph.fingerprint.encode(),
             *(getattr(graph, field).tobytes() for field in _PRICED),
             *map(str.encode, texts), *(array.tobytes() for array in arrays))
    return hashlib.sha256(b''.join(parts)).hexdigest()[:16]

  def summary(self) -> dict[str, Any]:
    """Returns the task's part of the results, without its cells."""
    bound = self.bound
    return {
        'name': self.task.name,
        'file_name': self.task.file_name,
        'label': self.task.label,
        'cluster': self.cluster.name,
        'setting': self.setting,
        'paper_ops': self.paper_ops,
        'num_ops': self.graph.num_ops,
        'num_groups': self.graph.num_groups,
        'num_edges': len(self.graph.edges),
        'num_accelerators': sum(d.type == 'GPU' for d in self.cluster.devices),
        'fingerprint': self.graph.fingerprint,
        'digest': self.digest,
        'has_expert': self.expert_devices is not None,
        'lower_bound_s': bound.seconds if bound else None,
        'critical_path_s': bound.critical_path_s if bound else None,
        'work_s': bound.work_s if bound else None,
    }


def load(task: tasks_lib.Task, settings: settings_lib.Settings) -> Loaded:
  """Reads or builds a task's graph.

  Raises:
    GdpError: the graph or the cluster cannot be used.
  """
  request = request_lib.Request(task.source, settings.batch_size,
                                settings.trip_count, settings.profile,
                                settings.may_round)
  step = reading.read(request, functools.partial(cluster, task, settings))
  problem, workload = step.problem(), reading.workload(request)
  simulated = settings.simulated
  return Loaded(
      task, step.graph, step.cluster, step.cost_model, _expert(task, problem),
      bounds.lower_bound(step.graph, step.cluster, problem.op_seconds)
      if simulated else None,
      reading.measurable(request, step).to_meta_graph().SerializeToString()
      if settings.reward == rewards.MEASURED else None,
      workload.setting if workload else '',
      workload.paper_ops if workload else 0)


def save(path: pathlib.Path, loaded: Loaded) -> None:
  """Writes a file for `parse`, which only processes of this run may read."""
  path.write_bytes(pickle.dumps(loaded, pickle.HIGHEST_PROTOCOL))


def parse(data: bytes) -> Loaded:
  """Returns the task that `save` wrote."""
  loaded = pickle.loads(data)
  # Arrays from a pickle are writable; `replace` makes them read-only.
  return dataclasses.replace(loaded, graph=loaded.graph.replace())


def cluster(
    task: tasks_lib.Task, settings: settings_lib.Settings,
    devices: Sequence[str] = ()
) -> cluster_lib.Cluster:
  """Returns a task's cluster; with `devices`, for a graph that may use these.

  Raises:
    GdpError: there is no such cluster.
  """
  if settings.local_workers:
    from gdp_grappler.evaluation.measuring import local_workers
    return local_workers.cluster(settings.local_workers)
  return resolve.resolve(task.cluster, devices,
                         max_memory.parse(settings.max_memory))


def _expert(task: tasks_lib.Task,
            problem: placer_lib.Problem) -> np.ndarray | None:
  if task.expert == tasks_lib.ONE_GPU:
    return placer_sets.expert_on_one_gpu(problem.graph.num_ops, problem.cluster)
  if problem.expert_devices is None:
    return None
  return np.asarray(problem.expert_devices, np.int32)
