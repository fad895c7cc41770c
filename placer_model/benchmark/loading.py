"""From a task to all that its cells need, as one file."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import pickle
from typing import Any

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph
from placer_model.benchmark import bounds
from placer_model.benchmark import placer_sets
from placer_model.benchmark import settings as settings_lib
from placer_model.benchmark import tasks as tasks_lib

# Fields that change the price of a placement without changing its graph's
# fingerprint.
_PRICED = ('flops', 'io_bytes', 'groups', 'allowed_types', 'user_pins',
           'executions')


@dataclasses.dataclass(frozen=True, eq=False)
class Loaded:
  """A task's graph and whatever belongs to it.

  Attributes:
    task: Which.
    graph: N ops.
    cluster: D devices.
    cost_model: Of a graph that comes with costs; None for the roofline.
    expert_devices: int32 [N], where an expert puts the ops; None if unknown.
    bound: Lower bound of the simulated step; None if steps are measured.
    source: Serialized MetaGraphDef to measure; None if nothing is measured.
    setting: One line on the workload; '' for other graphs.
    paper_ops: Ops as the paper counts them; 0 if unknown.
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
    """16 hex digits that change with all that a price depends on."""
    result = hashlib.sha256(self.graph.fingerprint.encode())
    for field in _PRICED:
      result.update(getattr(self.graph, field).tobytes())
    result.update('\0'.join(self.graph.pins).encode())
    result.update(self.cluster.to_json().encode())
    if self.expert_devices is not None:
      result.update(self.expert_devices.tobytes())
    if self.cost_model is not None:
      result.update(
          self.cost_model.op_seconds(self.graph, self.cluster).tobytes())
      result.update(
          self.cost_model.workspace_bytes(self.graph, self.cluster).tobytes())
    return result.hexdigest()[:16]

  def summary(self) -> dict[str, Any]:
    """The task's part of results.json, without its cells."""
    bound = self.bound
    return {
        'name': self.task.name,
        'file_name': self.task.file_name,
        'label': self.task.label,
        'cluster': self.cluster.name,
        'table': self.task.table,
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
  """Reads or builds a task's graph; imports TensorFlow.

  Raises:
    GdpError: the graph or the cluster cannot be used.
  """
  from gdp_grappler.cluster import resolve
  from gdp_grappler.evaluation.costs import roofline
  cluster = _cluster(task, settings, resolve)
  graph, costs, source, workload = _graph(task, settings)
  seconds = (costs or roofline.Roofline()).op_seconds(graph, cluster)
  simulated = settings.simulated
  return Loaded(
      task, graph, cluster, costs, _expert(task, graph, cluster, seconds),
      bounds.lower_bound(graph, cluster, seconds) if simulated else None,
      None if settings.reward != settings_lib.MEASURED or source is None else
      source.to_meta_graph().SerializeToString(),
      workload.setting if workload else '',
      workload.paper_ops if workload else 0)


def save(path: pathlib.Path, loaded: Loaded) -> None:
  """Writes what `read` reads; for processes of one run only."""
  path.write_bytes(pickle.dumps(loaded, pickle.HIGHEST_PROTOCOL))


def read(path: pathlib.Path) -> Loaded:
  """What `save` wrote."""
  loaded = pickle.loads(path.read_bytes())
  # Arrays come out of a pickle writable.
  return dataclasses.replace(loaded, graph=loaded.graph.replace())


def _cluster(task, settings, resolve) -> cluster_lib.Cluster:
  if settings.local_workers:
    from gdp_grappler.evaluation.measuring import local_workers
    return local_workers.cluster(settings.local_workers)
  return resolve.resolve(task.cluster)


def _graph(task, settings):
  """The graph, its own costs, its SourceGraph and its Workload, or None."""
  from gdp_grappler.evaluation.costs import given_costs
  from gdp_grappler.graph import graph_def_io
  from gdp_grappler.graph.sources import sources
  from gdp_grappler.workloads import registry
  workload, batch_size = None, settings.batch_size
  if task.source in registry.names():
    workload = registry.get(task.source)
    source = registry.source(task.source)
  else:
    given = given_costs.load(task.source) if (pathlib.Path(
        task.source).is_file()) else None
    if given is not None:
      return (*given, None, None)
    source = sources.load(task.source, batch_size=batch_size)
  return (graph_def_io.read(source,
                            unknown_dim=batch_size), None, source, workload)


def _expert(task, graph, cluster, seconds) -> np.ndarray | None:
  if task.expert == 'one_gpu':
    return placer_sets.expert_on_one_gpu(graph.num_ops, cluster)
  if task.expert == 'workload':
    from gdp_grappler.workloads import registry
    return np.asarray(
        registry.expert_devices(task.source, graph, cluster, seconds), np.int32)
  return None
