"""Seconds and workspace of ops from a profile.

For each op and device the first rule that applies holds:

1. Known: the profile has an op of the same name, type, FLOPs and bytes, which
   could be timed. If the profile is of another graph, this op must also have
   run. Both ops take the same seconds.
2. Interpolated: the op's type was profiled. With three different sizes or more,
   seconds = a + b FLOPs + c bytes, with a, b, c >= 0, fitted to the profiled
   ops of the type by least absolute relative error. With fewer sizes:
   the roofline times the type's median ratio of measured to roofline seconds.
3. Fallen back: the roofline times the median ratio of the op's family or, if no
   op of the family was profiled, of all profiled ops.

Each execution of an op also costs a visit of the executor. The profile has the
seconds of a visit. On devices of a type that was not profiled, the roofline
holds.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import os
from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.costs import profile as profile_lib
from gdp_grappler.evaluation.costs import roofline as roofline_lib
from gdp_grappler.graph import op_graph

_LEAST_SIZES = 3  # Distinct sizes of a type that a fit needs.
_ROUNDS = 20  # Rounds of reweighting in a fit.


@dataclasses.dataclass(frozen=True)
class Coverage:
  """Number of ops of a graph by the rule that gives their seconds.

  Attributes:
    known: Ops that were measured themselves.
    interpolated: Ops of a measured type.
    fell_back: Ops that get the scaled roofline.
  """

  known: int
  interpolated: int
  fell_back: int

  def __str__(self) -> str:
    return (f'{self.known} ops measured, {self.interpolated} interpolated by '
            f'type and size, {self.fell_back} on the scaled roofline')


@dataclasses.dataclass(frozen=True, eq=False)
class ProfiledCostModel(roofline_lib.OverRoofline):
  """A cost model with measured seconds.

  Attributes:
    profile: The measurements.
  """

  profile: profile_lib.Profile

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    """float64 [N, D], seconds of one step; see `CostModel.op_seconds`."""
    result = self.base.op_seconds(graph, cluster)
    for column, device in enumerate(cluster.devices):
      measured = self.profile.of(device.name, device.type)
      if measured is not None:
        result[:, column] = self._seconds(graph, device, measured)
    return result

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    """int64 [N, D], measured for known ops, else the roofline's.

    The measured memory of a convolution on a GPU includes cuDNN's scratch.
    TensorFlow can do without scratch, so the roofline's number is the limit.
    """
    result = np.array(self.base.workspace_bytes(graph, cluster))
    rows = self._rows(graph)
    convolves = graph.where_type(roofline_lib.is_convolution)
    for column, device in enumerate(cluster.devices):
      measured = self.profile.of(device.name, device.type)
      if measured is not None:
        known = self._known(rows, graph, measured)
        found = measured.workspace_bytes[rows[known]]
        if device.type == 'GPU':
          found = np.where(convolves[known],
                           np.minimum(found, result[known, column]), found)
        result[known, column] = found
    return result

  def contention(self, cluster: cluster_lib.Cluster) -> cost_model.Contention:
    """The measured contention of devices that were profiled in parallel."""
    result = cost_model.no_contention(cluster)
    numbers: dict[str, int] = {}
    for column, device in enumerate(cluster.devices):
      measured = self.profile.of(device.name, device.type)
      if measured is not None and measured.bus and (measured.name
                                                    == device.name):
        result.buses[column] = numbers.setdefault(measured.bus, column)
        result.shares[column] = measured.contention
    return result

  def coverage(self, graph: op_graph.OpGraph) -> Coverage:
    """Number of ops by the rule that gives their seconds."""
    rows = self._rows(graph)
    devices = self.profile.devices
    timed = np.all([d.timed for d in devices], axis=0)
    known = np.all([self._known(rows, graph, d) for d in devices], axis=0)
    seen = {t for t, ok in zip(self.profile.op_types, timed) if ok}
    unknown = [t for t, ok in zip(graph.op_types, known) if not ok]
    interpolated = sum(t in seen for t in unknown)
    return Coverage(
        len(rows) - len(unknown), interpolated,
        len(unknown) - interpolated)

  def _seconds(self, graph: op_graph.OpGraph, device: cluster_lib.Device,
               measured: profile_lib.DeviceProfile) -> np.ndarray:
    rows = self._rows(graph)
    known = self._known(rows, graph, measured)
    once = np.zeros(graph.num_ops)
    if not known.all():
      once[~known] = self._laws(measured, device).seconds(
          [t for t, k in zip(graph.op_types, known) if not k],
          graph.flops[~known], graph.io_bytes[~known])
    result = (once + measured.visit_s) * graph.executions
    hits = rows[known]
    if self._same_graph(graph):
      # For this graph, the number of executions was measured as well.
      result[known] = measured.seconds[hits] + (measured.visits[hits]
                                                * measured.visit_s)
    else:
      result[known] = (measured.seconds[hits] / measured.visits[hits]
                       + measured.visit_s) * graph.executions[known]
    if device.asynchronous:
      # An op that launches no kernel takes no time on the stream.
      idle = op_details.launch_nothing(graph.op_types, graph.io_bytes,
                                       graph.works_on_host, (device,))
      result[idle[:, 0]] = 0.
    return result

  def _known(self, rows: np.ndarray, graph: op_graph.OpGraph,
             measured: profile_lib.DeviceProfile) -> np.ndarray:
    """bool [N], ops whose own seconds were measured; see `_rows`."""
    usable = measured.timed
    if not self._same_graph(graph):
      # An op that did not run took 0 s, but it may run in another graph.
      usable &= measured.executions > 0
    result = rows >= 0
    result[result] = usable[rows[result]]
    return result

  def _same_graph(self, graph: op_graph.OpGraph) -> bool:
    return graph.fingerprint == self.profile.fingerprint and np.array_equal(
        graph.flops, self.profile.flops) and np.array_equal(
            graph.io_bytes, self.profile.io_bytes)

  def _rows(self, graph: op_graph.OpGraph) -> np.ndarray:
    """int [N], index of the same op in the profile; -1 if there is none."""
    if self._same_graph(graph):
      return np.arange(graph.num_ops)
    return np.array([
        self._index.get(key, -1)
        for key in zip(graph.names, graph.op_types, graph.flops.tolist(),
                       graph.io_bytes.tolist())
    ], int)

  @functools.cached_property
  def _index(self) -> dict[tuple[str, str, float, float], int]:
    p = self.profile
    return {
        key: i for i, key in enumerate(
            zip(p.op_names, p.op_types, p.flops.tolist(), p.io_bytes.tolist()))
    }

  def _laws(self, measured: profile_lib.DeviceProfile,
            device: cluster_lib.Device) -> _Laws:
    known = self._known_laws
    key = (measured.name, device)
    if key not in known:
      known[key] = _Laws(self.profile, measured, device, self.base)
    return known[key]

  @functools.cached_property
  def _known_laws(self) -> dict[tuple[str, cluster_lib.Device], _Laws]:
    return {}


def from_file(path: str | os.PathLike[str],
              graph: op_graph.OpGraph) -> ProfiledCostModel:
  """Reads a profile file, and returns its cost model.

  Args:
    path: File that `gdp profile` wrote.
    graph: Graph that the cost model will be used for.

  Raises:
    GdpError: the file is missing or damaged, or has no type of op in common
      with the graph.
  """
  profile = profile_lib.load(path)
  if graph.num_ops and not set(graph.op_types) & set(profile.op_types):
    raise errors.GdpError(
        f'{path} is the profile of "{profile.graph}", which has no type of op '
        f'in common with "{graph.name}". Profile that one: `gdp profile`.')
  return ProfiledCostModel(profile)


class _Laws:
  """Seconds of one execution, by type and size, on one profiled device."""

  def __init__(self, profile: profile_lib.Profile,
               measured: profile_lib.DeviceProfile, device: cluster_lib.Device,
               base: roofline_lib.Roofline) -> None:
    ran = np.flatnonzero((measured.executions > 0) & measured.timed)
    self._device, self._base = device, base
    types = [profile.op_types[i] for i in ran]
    flops, io_bytes = profile.flops[ran], profile.io_bytes[ran]
    seconds = measured.seconds[ran] / measured.executions[ran]
    roofline = base.seconds(types, flops, io_bytes, (device,))[:, 0]
    # An op without a kernel takes no time on the stream of a GPU.
    priced = roofline > 0
    ratios = np.divide(seconds, roofline, out=np.ones(len(ran)), where=priced)
    self._ratio = float(np.median(ratios[priced])) if priced.any() else 1.
    self._types: dict[str, float] = {}
    self._families: dict[str, float] = {}
    self._fits: dict[str, tuple[float, float, float]] = {}
    for label, rows in _grouped(types).items():
      if priced[rows].any():
        self._types[label] = float(np.median(ratios[rows[priced[rows]]]))
      sizes = np.stack([flops[rows], io_bytes[rows]], 1)
      if len(np.unique(sizes, axis=0)) >= _LEAST_SIZES:
        self._fits[label] = fit(flops[rows], io_bytes[rows], seconds[rows])
    for label, rows in _grouped([roofline_lib.family(t) for t in types
                                ]).items():
      if priced[rows].any():
        self._families[label] = float(np.median(ratios[rows[priced[rows]]]))

  def seconds(self, types: Sequence[str], flops: np.ndarray,
              io_bytes: np.ndarray) -> np.ndarray:
    """[M] seconds of M ops."""
    roofline = self._base.seconds(types, flops, io_bytes, (self._device,))[:, 0]
    result = np.zeros(len(types))
    for label, rows in _grouped(types).items():
      if label in self._fits:
        a, b, c = self._fits[label]
        result[rows] = a + b * flops[rows] + c * io_bytes[rows]
      else:
        result[rows] = roofline[rows] * self._types.get(
            label, self._families.get(roofline_lib.family(label), self._ratio))
    return result


def fit(flops: np.ndarray, io_bytes: np.ndarray,
        seconds: np.ndarray) -> tuple[float, float, float]:
  """Fits a, b, c >= 0 of seconds ~ a + b flops + c bytes.

  The fit minimizes the sum of absolute relative errors by reweighted least
  squares (Lawson, "Contributions to the theory of linear least maximum
  approximation", 1961), so that a few outliers have little influence. No
  coefficient is negative, because the least squares problem is solved for
  every subset of the three terms.

  Args:
    flops: [M]
    io_bytes: [M]
    seconds: [M]
  """
  seconds = np.maximum(seconds, 1e-9)  # The clock's resolution.
  terms = np.stack([np.ones_like(seconds), flops, io_bytes], 1)
  scale = np.maximum(terms.max(0), 1e-300)
  rows = terms / scale / seconds[:, None]  # An exact fit gives rows @ x == 1.
  weights = np.ones_like(seconds)
  for _ in range(_ROUNDS):
    root = np.sqrt(weights)
    best = _not_negative(rows * root[:, None], root)
    weights = 1 / np.maximum(np.abs(rows @ best - 1), 1e-3)
  return tuple((best / scale).tolist())


def _not_negative(rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
  """The x >= 0 [3] with the least |rows x - wanted|."""
  best, least = np.zeros(3), float(wanted @ wanted)
  for used in itertools.chain.from_iterable(
      itertools.combinations(range(3), k) for k in (1, 2, 3)):
    some = np.linalg.lstsq(rows[:, used], wanted, rcond=None)[0]
    error = rows[:, used] @ some - wanted
    if (some >= 0).all() and error @ error < least:
      best, least = np.zeros(3), float(error @ error)
      best[list(used)] = some
  return best


def _grouped(labels: Sequence[str]) -> dict[str, np.ndarray]:
  """Positions of each label."""
  groups = collections.defaultdict(list)
  for i, label in enumerate(labels):
    groups[label].append(i)
  return {label: np.array(rows) for label, rows in groups.items()}
