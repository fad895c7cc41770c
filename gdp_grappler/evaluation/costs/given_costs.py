"""Costs of ops that the file of the graph itself gives.

For each op and device the first rule that applies holds:

1. The file has seconds for the device, by its full name, its short name
   ('GPU:0'), its model ('P100' or 'haswell', recognized by the device's
   figures), its type, or for every device.
2. The file has seconds for another device of the type: these seconds times the
   ratio of speeds. The ratio comes from the roofline if the op has FLOPs or
   bytes, otherwise from the rates of dense kernels.
3. The op has FLOPs or bytes, or no seconds at all: the roofline.

If no rule gives an op a cost on a type of device, the op may not be on devices
of this type.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from gdp_grappler import errors
from gdp_grappler import suggestions
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import device_figures
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import roofline as roofline_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.costed import cost_graph
from gdp_grappler.graph.costed import given
from gdp_grappler.graph.costed import graph_json
from gdp_grappler.graph.sources import origin as origin_lib

# Figures by which a model of device is recognized.
_RATES = 'peak_flops', 'efficiency', 'bandwidth_bytes_per_s'


@dataclasses.dataclass(frozen=True, eq=False)
class GivenCostModel(cost_model.CostModel):
  """A cost model with the costs of a file.

  The ops are not TensorFlow's. So each execution launches one kernel, and the
  host has no work beyond the launch.

  Attributes:
    costs: The costs in the file.
    base: Roofline for seconds that the file lacks, and for shares of a card.
  """

  costs: given.GivenCosts
  base: roofline_lib.Roofline = roofline_lib.Roofline()

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """float64 [N, D], seconds of one step; see `CostModel.op_seconds`.

    An op has no cost on some devices where it may not be. There it gets its
    cost on the slowest other device.

    Raises:
      GdpError: the file lacks an op of the graph, or the cost of an op on a
        device where the op may be.
    """
    rows = self._rows(graph)
    roofline = self.base.op_seconds(graph, cluster)
    result = np.stack([
        self._column(graph, rows, cluster, device, roofline[:, column])
        for column, device in enumerate(cluster.devices)
    ], 1)
    types = [op_graph.DEVICE_TYPES.index(d.type) for d in cluster.devices]
    unknown = np.isnan(result)
    lacking = np.argwhere(unknown & graph.allowed_types[:, types])
    if lacking.size:
      op, column = lacking[0]
      device = cluster.devices[column]
      raise errors.GdpError(
          f'{self.costs.path}: node "{graph.names[op]}", field "seconds": '
          f'no entry is for {device.short_name} of cluster '
          f'"{cluster.name}". Add "{device.type}", or "flops" or "io_bytes".')
    worst = np.where(unknown, 0., result).max(1, keepdims=True)
    return np.where(unknown, worst, result)

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """int64 [N, D], the bytes that the file gives, the same on all devices."""
    once = self.costs.workspace_bytes[self._rows(graph)]
    return np.repeat(once[:, None], cluster.num_devices, 1)

  def card_shares(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
                  seconds: np.ndarray) -> np.ndarray:
    """float64 [N, D], the roofline's; 1 for ops without FLOPs and bytes."""
    shares = self.base.card_shares(graph, cluster, seconds)
    return np.where(_sized(graph)[:, None], shares, 1.)

  def _column(self, graph: op_graph.OpGraph, rows: np.ndarray,
              cluster: cluster_lib.Cluster, device: cluster_lib.Device,
              roofline: np.ndarray) -> np.ndarray:
    """float64 [N], seconds on one device; NaN if no rule applies."""
    seconds = {
        label: column[rows] for label, column in self.costs.seconds.items()
    }
    result = np.full(graph.num_ops, np.nan)

    def fill(column: np.ndarray) -> None:
      np.copyto(result, column, where=np.isnan(result))

    for label in _labels(device):
      if label in seconds:
        fill(seconds[label])
    sized = _sized(graph)
    for label, column in seconds.items():
      other = _figures(label, device, cluster)
      if other is not None and np.isnan(result).any():
        theirs = self.base.seconds(graph.op_types, graph.flops, graph.io_bytes,
                                   (other,))[:, 0] * graph.executions
        dense = (other.peak_flops * other.efficiency) / (device.peak_flops
                                                         * device.efficiency)
        fill(column * np.where(
            sized, roofline / np.where(theirs > 0, theirs, 1.), dense))
    bare = np.all([np.isnan(column) for column in seconds.values()], axis=0)
    fill(np.where(sized | bare, roofline, np.nan))
    return result

  def _rows(self, graph: op_graph.OpGraph) -> np.ndarray:
    """int [N], positions of the graph's ops in the file."""
    if graph.names == self.costs.names:
      return np.arange(graph.num_ops)
    unknown = next((n for n in graph.names if n not in self._index), None)
    if unknown is not None:
      raise errors.GdpError(
          f'{self.costs.path} gives costs for its own graph, which has no op '
          f'"{unknown}". Price the graph of the file, or leave its costs out.')
    return np.array([self._index[name] for name in graph.names], int)

  @functools.cached_property
  def _index(self) -> dict[str, int]:
    return {name: i for i, name in enumerate(self.costs.names)}


def load(
    origin: origin_lib.Origin
) -> tuple[op_graph.OpGraph, GivenCostModel] | None:
  """Reads a graph with its costs; None if the file is of another kind.

  The function does not import TensorFlow.

  Args:
    origin: A file that `docs/graph_json.md` describes, or a CostGraphDef or a
      RunMetadata with a CostGraphDef, as text or binary.

  Raises:
    InvalidGraphError: the file is of such a kind, but has an error.
  """
  if not origin.is_file or origin.is_archive:
    return None
  path, data = origin.text, origin.data
  if graph_json.is_graph_json(data) or path.endswith('.json'):
    graph, costs = graph_json.read(path, data)
  elif cost_graph.is_cost_graph(data):
    graph, costs = cost_graph.read(path, data)
  else:
    return None
  _check_labels(costs)
  return _where_priced(graph, costs), GivenCostModel(costs)


def _sized(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], whether the roofline knows the size of each op."""
  return (graph.flops > 0) | (graph.io_bytes > 0)


def _where_priced(graph: op_graph.OpGraph,
                  costs: given.GivenCosts) -> op_graph.OpGraph:
  """Forbids each op the types of device on which the op has no cost."""
  priced = np.zeros((graph.num_ops, len(op_graph.DEVICE_TYPES)), bool)
  priced |= _sized(graph)[:, None]
  for label, seconds in costs.seconds.items():
    kind = _type(label)
    known = ~np.isnan(seconds)
    for column, name in enumerate(op_graph.DEVICE_TYPES):
      if kind in (name, given.ANYWHERE):
        priced[:, column] |= known
  # An op with neither seconds nor work costs a launch on any device.
  priced |= ~priced.any(1, keepdims=True)
  allowed = graph.allowed_types & priced
  nowhere = np.flatnonzero(~allowed.any(1))
  if nowhere.size:
    op = nowhere[0]
    kinds = ' and '.join(
        name for name, ok in zip(op_graph.DEVICE_TYPES, graph.allowed_types[op])
        if ok)
    raise given.wrong(
        costs.path, f'node "{graph.names[op]}", field "seconds"',
        f'it has none for {kinds}, where the node has to be; add them')
  return graph.replace(allowed_types=allowed)


def _check_labels(costs: given.GivenCosts) -> None:
  for label, seconds in costs.seconds.items():
    if _type(label) is None:
      op = costs.names[np.flatnonzero(~np.isnan(seconds))[0]]
      near = suggestions.did_you_mean(
          label, (*op_graph.DEVICE_TYPES, *device_figures.CARDS,
                  *device_figures.CPUS, 'GPU:0'))
      raise given.wrong(
          costs.path, f'node "{op}", field "seconds"', f'"{label}" is no '
          f'device.{near} Give a type (CPU, GPU), a card '
          f'({", ".join(device_figures.CARDS)}), a processor '
          f'({", ".join(device_figures.CPUS)}) or a device such as GPU:0')


def _type(label: str) -> str | None:
  """The type of device that a label names; None if it names no device."""
  if label == given.ANYWHERE or label in op_graph.DEVICE_TYPES:
    return label
  if label in device_figures.CARDS:
    return 'GPU'
  if label in device_figures.CPUS:
    return 'CPU'
  try:
    kind = cluster_lib.device_type(cluster_lib.canonical_device(label))
  except errors.ClusterError:
    return None
  return kind if kind in op_graph.DEVICE_TYPES else None


def _labels(device: cluster_lib.Device) -> tuple[str, ...]:
  """Labels for the seconds of a device, the most specific one first."""
  short = device.short_name
  spellings = (device.name, short, f'/device:{short}', f'/{short}',
               short.lower(), f'/{short.lower()}')
  return (*spellings, *_models(device), device.type, given.ANYWHERE)


def _models(device: cluster_lib.Device) -> list[str]:
  """Names of the models that have the same figures as the device."""
  return [
      name for name, figures in _all_models(device.type).items()
      if all(figures[field] == getattr(device, field) for field in _RATES)
  ]


@functools.cache
def _all_models(kind: str) -> dict[str, dict[str, Any]]:
  """Fields of `cluster.Device`, by the name of a card or a processor."""
  if kind == 'GPU':
    found = {n: vars(card) for n, card in device_figures.CARDS.items()}
  else:
    found = {n: cpu.figures for n, cpu in device_figures.CPUS.items()}
  return {
      name: {field: figures[field] for field in (*_RATES, 'launch_s')}
      for name, figures in found.items()
  }


def _figures(label: str, device: cluster_lib.Device,
             cluster: cluster_lib.Cluster) -> cluster_lib.Device | None:
  """A device of the same type as `device` with the figures of a label."""
  if _type(label) != device.type or label == device.type:
    return None
  model = _all_models(device.type).get(label)
  if model is not None:
    return dataclasses.replace(device, **model)
  try:
    return cluster.devices[cluster.device_index(label)]
  except errors.ClusterError:
    return None
