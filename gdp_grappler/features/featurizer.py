"""Raw features of a graph's units and of a cluster's devices."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.features import places
from gdp_grappler.features import schema
from gdp_grappler.graph import choices
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph


def featurize(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
              units: np.ndarray,
              op_seconds: np.ndarray) -> schema.GraphFeatures:
  """Returns the inputs of the policy for a graph on a cluster.

  Args:
    graph: N ops.
    cluster: D devices.
    units: int32 [N], unit of each op, 0 .. M-1 in topological order (see
      `graph.coarsening`).
    op_seconds: float64 [N, D], seconds of each op on each device
      (`CostModel.op_seconds`).

  Raises:
    InfeasiblePlacementError: some group has no legal device.
  """
  m = int(units.max()) + 1
  edges, edge_bytes = _unit_edges(graph, units, m)
  costliest = _costliest(units, m, op_seconds.min(axis=1))
  columns = _unit_columns(graph, units, m, edges, edge_bytes, op_seconds)
  columns.update(
      places.columns(
          graph, costliest, columns['fastest_s'],
          np.minimum(columns['downward_rank_s'], columns['upward_rank_s'])))
  return schema.GraphFeatures(
      op_types=tuple(graph.op_types[op] for op in costliest),
      units=np.stack([columns[name] for name in schema.UNIT_FEATURES],
                     axis=1).astype(np.float32), edges=edges,
      edge_bytes=edge_bytes.astype(np.float32),
      allowed=allowed_by_unit(graph, cluster,
                              units), devices=_device_features(cluster))


def allowed_by_unit(graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                    units: np.ndarray) -> np.ndarray:
  """Returns the devices that are legal for every op of a unit, bool [M, D]."""
  by_group = constraints.allowed_devices(graph, cluster)
  return choices.of_all(by_group[graph.groups], units, int(units.max()) + 1)


def _unit_edges(graph: op_graph.OpGraph, units: np.ndarray,
                m: int) -> tuple[np.ndarray, np.ndarray]:
  """Returns edges of units, int32 [E, 2], and bytes of their tensors [E].

  A tensor with several consumers in one unit counts once.
  """
  pairs = units[graph.edges]
  outside = pairs[:, 0] != pairs[:, 1]
  keys = pairs[outside, 0].astype(np.int64) * m + pairs[outside, 1]
  tensors, sizes = graph.edge_tensors[outside], graph.edge_bytes[outside]
  # One number for both columns, because sorting rows is about ten times as
  # slow.
  _, once = np.unique(keys * (len(graph.tensor_ops) + 1) + tensors,
                      return_index=True)
  unique, where = np.unique(keys[once], return_inverse=True)
  size = np.bincount(where, sizes[once], len(unique))
  return (np.stack([unique // m, unique % m], axis=1).astype(np.int32), size)


def _unit_columns(graph: op_graph.OpGraph, units: np.ndarray, m: int,
                  edges: np.ndarray, edge_bytes: np.ndarray,
                  op_seconds: np.ndarray) -> dict[str, np.ndarray]:
  fastest, slowest = op_seconds.min(axis=1), op_seconds.max(axis=1)
  down, up = path_ranks(graph, fastest)
  level = _downward(graph, np.ones(graph.num_ops))

  def total(values: np.ndarray) -> np.ndarray:
    return np.bincount(units, values, m)

  def highest(values: np.ndarray) -> np.ndarray:
    result = np.zeros(m)
    np.maximum.at(result, units, values)
    return result

  return {
      'flops': total(graph.flops),
      'io_bytes': total(graph.io_bytes),
      'output_bytes': total(graph.output_bytes),
      'param_bytes': total(graph.param_bytes),
      'num_ops': total(np.ones(graph.num_ops)),
      'num_inputs': np.bincount(edges[:, 1], minlength=m),
      'num_outputs': np.bincount(edges[:, 0], minlength=m),
      'input_bytes': np.bincount(edges[:, 1], edge_bytes, m),
      'fastest_s': total(fastest),
      'slowest_s': total(slowest),
      'downward_rank_s': highest(down),
      'upward_rank_s': highest(up),
      'level': highest(level),
  }


def path_ranks(graph: op_graph.OpGraph,
               seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """Returns seconds of the longest paths to and from each op.

  These are the ranks of HEFT (Topcuoglu et al. 2002, section 4), without
  transfers. The seconds of the op itself are included.

  Args:
    graph: N ops.
    seconds: float64 [N], seconds of each op.

  Returns:
    Seconds from a source to the op, and from the op to a sink; float64 [N]
    each.
  """
  return _downward(graph, seconds), native_graph.longest_to_sinks(
      graph.edges, graph.topological_order, seconds)


def _downward(graph: op_graph.OpGraph, seconds: np.ndarray) -> np.ndarray:
  """Returns seconds [N] of the longest path from a source through each op."""
  return native_graph.longest_from_sources(graph.edges, graph.topological_order,
                                           seconds)


def _costliest(units: np.ndarray, m: int, seconds: np.ndarray) -> np.ndarray:
  """Returns the op of each unit that takes longest, int [M]."""
  order = np.argsort(-seconds, kind='stable')
  first = np.full(m, -1)
  unit, index = np.unique(units[order], return_index=True)
  first[unit] = order[index]
  return first


def _device_features(cluster: cluster_lib.Cluster) -> np.ndarray:
  latency, bandwidth, _ = cluster.link_arrays
  others = ~np.eye(cluster.num_devices, dtype=bool)
  rows = []
  for i, device in enumerate(cluster.devices):
    linked = others[i].any()
    columns = {
        'is_cpu':
            device.type == 'CPU',
        'is_gpu':
            device.type == 'GPU',
        'is_host':
            i == cluster.host,
        'memory_bytes':
            device.memory_bytes,
        'flops_per_s':
            device.peak_flops * device.efficiency,
        'bandwidth_bytes_per_s':
            device.bandwidth_bytes_per_s,
        'launch_s':
            device.launch_s,
        'link_latency_s':
            latency[i, others[i]].mean() if linked else 0.,
        'link_bytes_per_s':
            bandwidth[i, others[i]].mean() if linked else 0.,
        'devices_on_compute':
            np.sum(cluster.compute_units == cluster.compute_units[i]),
    }
    rows.append([float(columns[name]) for name in schema.DEVICE_FEATURES])
  return np.array(rows, np.float32)
