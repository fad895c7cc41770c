"""Seconds of ops on calibrated devices, by family and size.

`gdp calibrate` times ops of each family in sizes from small to large. The
measured table gives the *slowdown* of a size: the measured seconds, divided by
the seconds of the roofline. On a synchronous device, an op that launches no
kernel takes the measured time of such an op. (On an asynchronous one this time
is the host's, `Device.visit_s`.) For other ops the first rule that applies
holds:

1. The op's type was measured: the roofline of arithmetic and traffic, times the
   slowdown interpolated between the measured sizes of this type.
2. Another type of its family was measured: the same, with all measured ops of
   the family.
3. Otherwise: the roofline.

A size is a point in the plane of the logarithms of FLOPs and bytes. Between
points the logarithm of the slowdown is a constant plus a weighted sum of the
distances to all points (Hardy, "Multiquadric equations of topography and other
irregular surfaces", Journal of Geophysical Research 1971). In one dimension
this is a line from point to point. Beyond the measured sizes the slowdown stays
within the measured range. No op takes less than the fastest measured op of its
type (or family), because the smallest ops show the time of a kernel without
work.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Sequence

import numpy as np

from gdp_grappler import products
from gdp_grappler.cluster import calibration as calibration_lib
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.costs import op_families
from gdp_grappler.evaluation.costs import roofline as roofline_lib
from gdp_grappler.graph import op_graph

_PLAIN_WORK = op_families.family('AddV2').host_work
_LEAST_S = 1e-8  # Least seconds of an op that launches a kernel.
# Width of the cells of a grid. Points in one cell count as one point, because
# their ops have the same size and differ in something else.
_ONE_PLACE = .05


@dataclasses.dataclass(frozen=True)
class CalibratedCostModel(roofline_lib.OverRoofline):
  """A cost model with measured kernels for calibrated devices of a cluster.

  Attributes:
    op_work: The host's work for an op beyond a bare launch, see `host_work`;
      None means that of the roofline.
    cudnn_work: The same for an op that uses cuDNN.
  """

  op_work: float | None = None
  cudnn_work: float | None = None

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """float64 [N, D], seconds of one step; see `CostModel.op_seconds`."""
    once = self.seconds(graph.op_types, graph.flops, graph.io_bytes, cluster,
                        op_details.of(graph))
    return once * graph.executions[:, None]

  def seconds(self, op_types: Sequence[str], flops: np.ndarray,
              io_bytes: np.ndarray, cluster: cluster_lib.Cluster,
              details: op_details.OpDetails | None = None) -> np.ndarray:
    """float64 [M, D], seconds of one execution of M ops.

    Args:
      op_types: [M]
      flops: [M]
      io_bytes: [M]
      cluster: D devices.
      details: Of the M ops; None means `op_details.plain`.
    """
    details = details or op_details.plain(len(op_types))
    result = self.base.seconds(op_types, flops, io_bytes, cluster.devices,
                               details)
    idle = op_details.launch_nothing(op_types, io_bytes, details.works_on_host,
                                     cluster.devices)
    for column, device in enumerate(cluster.devices):
      found = cluster.calibration(device.name)
      if found is not None:
        self._correct(result[:, column], op_types, flops, io_bytes, device,
                      found, details, idle[:, column])
    op_details.take_hosts_seconds(result, details.works_on_host, idle,
                                  cluster.devices)
    return result

  def host_work(self, graph: op_graph.OpGraph) -> np.ndarray:
    """float64 [N], see `CostModel.host_work`.

    The measured figures of one card hold for all cards. If a figure was not
    measured, the roofline's holds.
    """
    result = self.base.host_work(graph)
    asks = graph.where_type(
        lambda kind: op_families.family(kind).host_work > _PLAIN_WORK)
    times = np.maximum(graph.executions, 1)
    for work, rows in ((self.op_work, ~asks), (self.cudnn_work, asks)):
      if work is not None:
        result[rows] = work * times[rows]
    if self.op_work is not None:
      result += roofline_lib.dispatched_by_calls(graph) * times
    return result

  def _correct(self, seconds: np.ndarray, op_types: Sequence[str],
               flops: np.ndarray, io_bytes: np.ndarray,
               device: cluster_lib.Device,
               calibration: calibration_lib.Calibration,
               details: op_details.OpDetails, idle: np.ndarray) -> None:
    """Overwrites the seconds [M] of ops whose family the calibration has."""
    table = _table(self.base, device, calibration)
    types = np.array(op_types, object)
    visit_s = calibration.figure('other_op_s')
    if visit_s is not None and not device.asynchronous:
      seconds[idle] = visit_s
    for op_type in set(types[~idle]):
      law = table.law(op_type)
      if law is not None:
        rows = np.flatnonzero((types == op_type) & ~idle)
        measured_s = law.seconds(
            flops[rows], io_bytes[rows],
            table.ideal([op_type] * len(rows), flops[rows], io_bytes[rows],
                        details.of_rows(rows).as_calibrated()))
        # The measured seconds contain the gap before the kernel. The simulator
        # adds this gap itself.
        seconds[rows] = np.maximum(measured_s - device.gap_s, _LEAST_S)


def of(cluster: cluster_lib.Cluster) -> cost_model.CostModel:
  """The default cost model: calibrated costs if the cluster has any."""
  if not cluster.calibrated:
    return roofline_lib.Roofline()
  device = next((d for d in cluster.devices
                 if d.asynchronous and cluster.calibration(d.name)), None)
  if device is None or not device.dispatch_s:
    return CalibratedCostModel()
  found = cluster.calibration(device.name)
  assert found is not None
  return CalibratedCostModel(
      op_work=_work(found.figure('launching_op_s'), device.dispatch_s),
      cudnn_work=_work(found.figure('cudnn_op_s'), device.dispatch_s))


def _work(seconds: float | None, launch_s: float) -> float | None:
  """The work beyond a bare launch, as a multiple of the launch."""
  return None if seconds is None else max(0., seconds / launch_s - 1)


@functools.lru_cache(maxsize=64)
def _table(base: roofline_lib.Roofline, device: cluster_lib.Device,
           calibration: calibration_lib.Calibration) -> _Table:
  return _Table(base, device, calibration)


class _Table:
  """Laws of one calibrated device, by type of op."""

  def __init__(self, base: roofline_lib.Roofline, device: cluster_lib.Device,
               calibration: calibration_lib.Calibration) -> None:
    self._base = base
    # Slowdowns refer to the part of the roofline that grows with the size.
    self._device = dataclasses.replace(device, launch_s=0.)
    self._columns = calibration.columns
    self._laws: dict[str, _Law | None] = {}

  def law(self, op_type: str) -> _Law | None:
    """Law of a type, or of its family; None if neither was measured."""
    if op_type not in self._laws:
      self._laws[op_type] = self._find(op_type)
    return self._laws[op_type]

  def ideal(self, op_types: Sequence[str], flops: np.ndarray,
            io_bytes: np.ndarray,
            details: op_details.OpDetails | None = None) -> np.ndarray:
    """[M] seconds by the roofline, without launches."""
    base = dataclasses.replace(self._base, kernel_s=0.)
    seconds = base.seconds(op_types, flops, io_bytes, (self._device,), details)
    return seconds[:, 0]

  def _find(self, op_type: str) -> _Law | None:
    if op_type in self._columns:
      return self._fit([op_type])
    family = roofline_lib.family(op_type)
    same = [t for t in self._columns if roofline_lib.family(t) == family]
    return self._fit(same) if same else None

  def _fit(self, op_types: Sequence[str]) -> _Law:
    rows = np.concatenate([self._columns[t] for t in op_types])
    labels = [t for t in op_types for _ in self._columns[t]]
    flops, io_bytes, seconds = rows.T
    return _Law(flops, io_bytes, seconds, self.ideal(labels, flops, io_bytes))


class _Law:
  """The slowdown of ops of one kind against the roofline, by size."""

  def __init__(self, flops: np.ndarray, io_bytes: np.ndarray,
               seconds: np.ndarray, ideal_s: np.ndarray) -> None:
    """Fits the interpolation to P measured ops; all arguments are [P]."""
    places, members = _merged(_plane(flops, io_bytes))
    logs = np.log(seconds / np.maximum(ideal_s, 1e-12))
    values = np.array([logs[rows].mean() for rows in members])
    self._places = places
    self._range = values.min(), values.max()
    self._least_s = seconds.min()
    count = len(places)
    system = np.zeros((count + 1, count + 1))
    system[:count, :count] = _distances(places, places)
    system[:count, count] = system[count, :count] = 1.
    self._weights = np.linalg.solve(system, np.append(values, 0.))

  def seconds(self, flops: np.ndarray, io_bytes: np.ndarray,
              ideal_s: np.ndarray) -> np.ndarray:
    """[M] seconds of M ops; all arguments are [M]."""
    distances = _distances(_plane(flops, io_bytes), self._places)
    logs = products.product(distances, self._weights[:-1]) + self._weights[-1]
    longer = np.exp(np.clip(logs, *self._range))
    return np.maximum(longer * ideal_s, self._least_s)


def _plane(flops: np.ndarray, io_bytes: np.ndarray) -> np.ndarray:
  """[M, 2], logarithms of the sizes."""
  return np.log(np.maximum(np.stack([flops, io_bytes], 1), 1.))


def _distances(some: np.ndarray, others: np.ndarray) -> np.ndarray:
  """[A, B] distances between points [A, 2] and [B, 2]."""
  return np.linalg.norm(some[:, None] - others[None], axis=2)


def _merged(places: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
  """Distinct places [Q, 2], and the indices of the points at each place."""
  _, which = np.unique(np.round(places / _ONE_PLACE), axis=0,
                       return_inverse=True)
  which = which.ravel()
  members = [np.flatnonzero(which == i) for i in range(which.max() + 1)]
  return np.array([places[rows].mean(0) for rows in members]), members
