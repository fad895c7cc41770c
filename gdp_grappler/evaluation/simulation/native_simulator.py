"""Bindings of `simulator.cc`: passes NumPy arrays, and contains no rules."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref

import numpy as np

from gdp_grappler import native
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import validation
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.costs import op_details
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.graph.control_flow import merges


@dataclasses.dataclass(frozen=True, eq=False)
class SimulatorLayout:
  """A graph of N ops and T tensors on a cluster of D devices, with its costs.

  Attributes:
    graph: The ops and edges.
    cluster: The devices.
    tensor_bytes: int64 [T], sizes of the tensors in memory and in transfers.
    aliases: bool [N], whether the op passes on the buffer of its first data
      input or, without inputs, a buffer that it holds in all steps.
    resident_bytes: int64 [N], bytes that the op holds in all steps.
    allowed: bool [G, D], whether a group may be on a device.
    seconds: float64 [N, D], seconds of each op in a step.
    workspace_bytes: int64 [N, D], temporary memory of each op.
    contention: Slowdown of the devices by shared memory buses.
    control_edges: int32 [C, 2], edges in addition to the graph's own.
    launches: float64 [N], kernels that each op launches in a step.
    host_work: float64 [N], see `CostModel.host_work`; None means 0.
    dispatch_factors: float64 [N], factors of the host's time to dispatch an op
      and to issue the op's transfers; None means 1.
    poll_factors: float64 [N], factors of `poll_s` for the op's transfers; None
      means 1.
    card_shares: float64 [N, D], share of its card that each op can use; None if
      no card is cut into several devices.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  tensor_bytes: np.ndarray
  aliases: np.ndarray
  resident_bytes: np.ndarray
  allowed: np.ndarray
  seconds: np.ndarray
  workspace_bytes: np.ndarray
  contention: cost_model.Contention
  control_edges: np.ndarray
  launches: np.ndarray
  host_work: np.ndarray | None = None
  dispatch_factors: np.ndarray | None = None
  poll_factors: np.ndarray | None = None
  card_shares: np.ndarray | None = None

  def with_control_edges(self) -> op_graph.OpGraph:
    """The graph with all E + C edges, inputs from live branches first."""
    graph, order = self.graph, merges.live_first(self.graph)
    count = len(self.control_edges)
    return graph.replace(
        edges=np.concatenate([graph.edges[order], self.control_edges]),
        edge_tensors=np.append(graph.edge_tensors[order], np.full(count, -1)),
        read_on_host=np.append(graph.read_on_host[order], np.zeros(count,
                                                                   bool)))


class PreparedGraph:
  """A graph on a cluster, prepared in the native simulator.

  An object holds no reference to the graph. It may be used from several threads
  at once.
  """

  def __init__(self, layout: SimulatorLayout) -> None:
    """Prepares the graph.

    Raises:
      InvalidGraphError: the edges form a cycle.
      MemoryError: there is not enough memory.
    """
    graph = layout.with_control_edges()
    self._lib = _library()
    self._num_ops = graph.num_ops
    self._num_pools = len(layout.cluster.pool_bytes)
    self._on_host = op_details.leave_gpus(graph)
    self._hosts = op_details.hosts(layout.cluster.devices)
    # These variables keep the arrays alive until the call returns.
    native_graph = _native_graph(layout, graph)
    native_cluster = _native_cluster(layout)
    allowed, seconds = native.u8(layout.allowed), native.f64(layout.seconds)
    workspace = native.i64(layout.workspace_bytes)
    self._handle = self._lib.gdp_simulator_create(
        ctypes.byref(native_graph), ctypes.byref(native_cluster),
        _address(allowed), _address(seconds),
        _address(workspace) if workspace.any() else None)
    if not self._handle:
      # If a cycle is the reason, this raises an error that names the cycle.
      _ = graph.topological_order
      raise MemoryError('No memory for the simulator.')
    # A thread may still be in C++ when the program exits.
    weakref.finalize(self, self._lib.gdp_simulator_destroy,
                     self._handle).atexit = False

  def run(
      self, devices: np.ndarray, priorities: np.ndarray | None, threads: int,
      orderable: np.ndarray | None = None,
      ceilings_s: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Simulates K placements.

    Args:
      devices: int32 [K, N].
      priorities: float64 [K, N] or None.
      threads: Number of placements that are simulated in parallel.
      orderable: bool [N] or None. If given, asynchronous devices dispatch these
        ops in the order in which the priorities start them.
      ceilings_s: float64 [K], seconds. The simulation stops when a step is
        known to be above its ceiling. Its step time is then any time above the
        ceiling, and its peaks are the peaks so far. None means no ceilings.

    Returns:
      Step times [K] in seconds, infinite for placements that break a rule, and
      peaks of memory [K, P] in bytes.

    Raises:
      MemoryError: there is not enough memory.
    """
    seconds = np.empty(len(devices), np.float64)
    peaks = np.empty((len(devices), self._num_pools), np.int64)
    if self._lib.gdp_simulator_run(self._handle,
                                   len(devices), _address(devices),
                                   _address(priorities), _address(orderable),
                                   _address(ceilings_s), threads,
                                   _address(seconds), _address(peaks)):
      raise MemoryError('No memory for the simulator.')
    return seconds, peaks

  def schedule(self, devices: np.ndarray,
               priorities: np.ndarray | None) -> schedule_lib.Schedule | None:
    """The events of a step; None if the placement breaks a rule of the graph.

    Args:
      devices: int32 [N].
      priorities: float64 [N] or None.

    Raises:
      MemoryError: there is not enough memory.
    """
    seconds = np.empty(1, np.float64)
    peaks = np.empty(self._num_pools, np.int64)
    result = self._lib.gdp_schedule_create(self._handle, _address(devices),
                                           _address(priorities),
                                           _address(seconds), _address(peaks))
    if not result:
      raise MemoryError('No memory for the simulator.')
    try:
      worked_on = np.where(self._on_host, self._hosts[devices], devices)
      return (None if np.isinf(seconds[0]) else self._read(
          result, float(seconds[0]), peaks, worked_on))
    finally:
      self._lib.gdp_schedule_destroy(result)

  def _read(self, result: int, step_time_s: float, peaks: np.ndarray,
            devices: np.ndarray) -> schedule_lib.Schedule:
    sizes = np.empty(3, np.int64)
    self._lib.gdp_schedule_sizes(result, _address(sizes))
    sent, worked, points = sizes.tolist()
    start_s, end_s, dispatched_s = np.empty((3, self._num_ops))
    slots = np.empty(self._num_ops, np.int32)
    transfers, transfer_s = np.empty((sent, 4), np.int32), np.empty((sent, 2))
    works, work_s = np.empty((worked, 3), np.int32), np.empty((worked, 2))
    memory_s = np.empty(points)
    memory_pools = np.empty(points, np.int32)
    memory_bytes = np.empty(points, np.int64)
    arrays: list[np.ndarray] = [
        start_s, end_s, dispatched_s, slots, transfers, transfer_s, works,
        work_s, memory_s, memory_pools, memory_bytes
    ]
    self._lib.gdp_schedule_read(self._handle, result, *map(_address, arrays))
    by_transfer = np.argsort(works[:, 0], kind='stable')
    tensors, ops, sources, targets = transfers.T
    transfer_start_s, transfer_end_s = transfer_s.T
    work_transfers, work_devices, work_slots = works[by_transfer].T
    work_start_s, work_end_s = work_s[by_transfer].T
    return schedule_lib.Schedule(step_time_s, peaks, start_s, end_s,
                                 dispatched_s, devices, slots, tensors, ops,
                                 sources, targets, transfer_start_s,
                                 transfer_end_s, work_transfers, work_devices,
                                 work_slots, work_start_s, work_end_s, memory_s,
                                 memory_pools, memory_bytes)


def ceilings(ceiling_s: float | np.ndarray, count: int) -> np.ndarray:
  """float64 [K], one ceiling per placement.

  Args:
    ceiling_s: Seconds, [K] or one for all placements.
    count: K, the number of placements.

  Raises:
    ValueError: the number of ceilings is wrong, or one is not a number.
  """
  ceilings_s = np.asarray(ceiling_s, np.float64)
  if ceilings_s.shape not in ((), (count,)) or np.isnan(ceilings_s).any():
    raise ValueError(f'ceiling_s has shape {list(ceilings_s.shape)} or a value '
                     f'that is no number; give one, or [{count}].')
  return np.ascontiguousarray(np.broadcast_to(ceilings_s, count))


def _native_graph(layout: SimulatorLayout,
                  graph: op_graph.OpGraph) -> ctypes.Structure:
  """`GdpGraph` of simulator.cc, of a layout's graph with all edges."""
  i32, f64 = native.i32, native.f64
  return native.struct(
      num_ops=graph.num_ops, num_edges=len(graph.edges),
      num_tensors=len(graph.tensor_ops), num_groups=graph.num_groups,
      edges=i32(graph.edges), edge_tensors=i32(graph.edge_tensors),
      read_on_host=native.u8(graph.read_on_host), made_on_host=native.u8(
          graph.made_on_host), tensor_ops=i32(graph.tensor_ops),
      tensor_bytes=native.i64(layout.tensor_bytes),
      param_bytes=native.i64(layout.resident_bytes),
      aliases=native.u8(layout.aliases), groups=i32(graph.groups), order=None
      if len(layout.control_edges) else i32(layout.graph.topological_order),
      runs=f64(np.maximum(graph.executions, 1)), launches=f64(layout.launches),
      host_work=layout.host_work, dispatch_factors=layout.dispatch_factors,
      poll_factors=layout.poll_factors, on_host=native.u8(
          op_details.leave_gpus(graph)))


def _native_cluster(layout: SimulatorLayout) -> ctypes.Structure:
  """`GdpCluster` of simulator.cc."""
  cluster, contention = layout.cluster, layout.contention
  i32, f64 = native.i32, native.f64
  devices, units = cluster.devices, cluster.compute_units
  buses = np.full(units.max() + 1, -1)
  buses[units] = contention.buses
  slots = np.ones(units.max() + 1, int)
  np.maximum.at(slots, units, [device.slots for device in devices])
  latency_s, bytes_per_s, channels = cluster.link_arrays
  is_cut = layout.card_shares is not None
  return native.struct(
      num_devices=len(devices), num_units=len(slots),
      num_pools=len(cluster.pool_bytes), num_channels=channels.max() + 1,
      channels_per_link=channels.shape[-1], units=i32(units),
      pools=i32(cluster.memory_pools), slots=i32(slots),
      copy_s=f64([d.copy_s for d in devices]), copy_bytes_per_s=f64([
          np.inf if d.copy_bytes_per_s is None else d.copy_bytes_per_s
          for d in devices
      ]), asynchronous=native.u8([d.asynchronous for d in devices]), host=f64([
          [getattr(d, name) for name in validation.HOST_TIMES] for d in devices
      ]), contexts=i32(cluster.contexts), buses=i32(buses),
      contention=f64(contention.shares), latency_s=f64(latency_s),
      bytes_per_s=f64(bytes_per_s), channels=i32(channels),
      cards=i32(cluster.cut_cards) if is_cut else None,
      card_shares=f64(layout.card_shares) if is_cut else None,
      step_s=float(cluster.step_s), hosts=i32(op_details.hosts(devices)))


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.SIMULATOR)
  pointer, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
  native.declare(
      lib, {
          'gdp_simulator_create': (pointer, [pointer] * 5),
          'gdp_simulator_destroy': (None, [pointer]),
          'gdp_simulator_run':
              (i32, [pointer, i64, *[pointer] * 4, i32, pointer, pointer]),
          'gdp_schedule_create': (pointer, [pointer] * 5),
          'gdp_schedule_destroy': (None, [pointer]),
          'gdp_schedule_sizes': (None, [pointer] * 2),
          'gdp_schedule_read': (None, [pointer] * 13),
      })
  return lib


def _address(array: np.ndarray | None) -> int | None:
  """Address of a C-contiguous array, which the caller keeps alive."""
  if array is None:
    return None
  assert array.flags.c_contiguous
  return array.ctypes.data
