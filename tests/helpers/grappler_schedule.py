"""What Grappler's own virtual scheduler makes of a placed graph."""

from __future__ import annotations

import dataclasses

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import device_properties_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import item as grappler_item

from gdp_grappler.graph import op_properties
from gdp_grappler.graph.sources import pruning

# Grappler's estimator divides bytes by this. So many GB/s that whatever is
# sent takes the shortest time there is, 1 ns, and ops cost their arithmetic.
_BANDWIDTH_KB_PER_S = 1 << 50

# OpLevelCostEstimator::PredictIdentity, which prices Merge: kMinComputeCost.
_MERGE_S = 1e-9
# What a _Recv takes: as little as there is.
RECEIVE_S = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class GrapplerSchedule:
  """One step as the virtual scheduler runs it.

  Attributes:
    makespan_s: When the last device is done.
    seconds: float64 [N], what each op costs; all runs of an op together.
    start_s: float64 [N], when its last run starts; -1 if it never runs.
    transfer_s: Seconds of all messages between devices together.
    receives_s: When each _Recv starts, by producer, output (-1 for a control
      edge) and receiving device.
  """

  makespan_s: float
  seconds: np.ndarray
  start_s: np.ndarray
  transfer_s: float
  receives_s: dict[tuple[str, int, str], float]


def run(definition: graph_pb2.GraphDef, devices: list[str]) -> GrapplerSchedule:
  """Schedules every op of a graph on virtual devices.

  Args:
    definition: N ops with all their attributes, those that have a default
      included, as a Grappler pass receives them: Grappler ends the process
      where it misses one.
    devices: [N] full names; all GPUs become alike, and so do all CPUs.
  """
  # Arguments and results of a function as nodes that Grappler can run.
  executable = op_properties.inferable(definition)
  meta_graph = meta_graph_pb2.MetaGraphDef(graph_def=executable)
  for node, device in zip(meta_graph.graph_def.node, devices):
    node.device = device
  meta_graph.collection_def['train_op'].node_list.value.extend(
      pruning.sinks(definition))
  cluster = grappler_cluster.Cluster(
      disable_timeline=False,
      devices=[_named_device(name) for name in sorted(set(devices))])
  _, _, step_stats = cluster.MeasureCosts(
      grappler_item.Item(meta_graph, ignore_colocation=True))
  return _read(step_stats, [node.name for node in definition.node])


def _named_device(name) -> device_properties_pb2.NamedDevice:
  kind = name.rsplit('device:', 1)[-1].split(':')[0]
  properties = device_properties_pb2.DeviceProperties(
      type=kind, frequency=1, num_cores=1, bandwidth=_BANDWIDTH_KB_PER_S)
  if kind == 'GPU':
    properties.environment['architecture'] = '7'
  return device_properties_pb2.NamedDevice(name=name, properties=properties)


def _read(step_stats, names) -> GrapplerSchedule:
  index = {name: i for i, name in enumerate(names)}
  seconds, start_s = np.zeros(len(names)), np.full(len(names), -1.)
  runs = np.zeros(len(names), int)
  makespan, sent, receives = 0., 0., {}
  for device in step_stats.dev_stats:
    for stats in device.node_stats:
      start, took = stats.all_start_nanos * 1e-9, stats.op_end_rel_nanos * 1e-9
      makespan = max(makespan, start + took)
      op = index.get(stats.node_name)
      if op is None:
        sent += took
        if stats.node_name.startswith('Recv_'):
          source, _, output = stats.node_name[len('Recv_'):].rsplit(
              '_on_', 1)[0].rpartition('_')
          receives[source, -1 if output == 'minus1' else int(output),
                   device.device] = start
      else:
        runs[op] += 1
        seconds[op], start_s[op] = took, start
  # A Merge runs once for each of its inputs; all of its runs are reported as
  # the time from the start of the first to the end of the last.
  seconds[runs > 1] = _MERGE_S * runs[runs > 1]
  return GrapplerSchedule(makespan, seconds, start_s, sent, receives)
