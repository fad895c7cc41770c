"""Schedules a placed graph by Grappler's own virtual scheduler."""

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

# Bandwidth of all devices. It is so high that each transfer takes the least
# time, 1 ns, and an op takes the time of its arithmetic.
_BANDWIDTH_KB_PER_S = 1 << 50

# OpLevelCostEstimator::PredictIdentity, which prices Merge: kMinComputeCost.
_MERGE_S = 1e-9
# Time of a _Recv: the least possible time.
RECEIVE_S = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class GrapplerSchedule:
  """One step as the virtual scheduler runs it.

  Attributes:
    makespan_s: End of the last op, in seconds.
    seconds: float64 [N], seconds of each op, over all its runs.
    start_s: float64 [N], start of the last run of each op; -1 if there is none.
    transfer_s: Seconds of all messages between devices, summed.
    receives_s: Start of each _Recv, by producer, output (-1 for a control edge)
      and receiving device.
  """

  makespan_s: float
  seconds: np.ndarray
  start_s: np.ndarray
  transfer_s: float
  receives_s: dict[tuple[str, int, str], float]


def run(definition: graph_pb2.GraphDef, devices: list[str]) -> GrapplerSchedule:
  """Schedules every op of a graph on virtual devices.

  Args:
    definition: N ops with all their attributes, default values included, as a
      Grappler pass receives them. Grappler ends the process if one is missing.
    devices: [N], full names. All GPUs become equal, and so do all CPUs.
  """
  # Grappler cannot run arguments and results of a function, so they become
  # other nodes.
  executable = graph_pb2.GraphDef()
  executable.CopyFrom(definition)
  op_properties._replace(
      node for node in executable.node if op_properties._is_foreign(node))
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
