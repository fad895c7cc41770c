"""The price of a placement by discrete-event simulation.

The rules, as TensorFlow's executor has them:

* An op starts when all its inputs, data and control, are on its device and its
  compute unit is free. A unit runs one op at a time; devices cut from one
  physical device share it. Waiting ops start in the order in which they became
  ready, those of one moment in topological order.
* When an op ends, each of its tensors is sent once to every other device that
  consumes it: tensors in the order of the graph, then devices in the order of
  the first consumer. Ops that end at one moment send in topological order.
* A transfer takes the link's latency plus bytes / bandwidth and has the link's
  channels for itself that long. A channel serves in the order of requests.
  Transfers run beside compute.
* A control edge is a message, sent once per op and device. Messages and empty
  tensors take the latency only: nothing is copied, so no channel is occupied.
* A tensor occupies its producer's memory from the producer's start until its
  last consumer there and its last transfer have ended; a received copy from
  the transfer's start until its last consumer has ended. An op that aliases
  (`ReadVariableOp`, `Identity`, `Reshape`, ...) occupies nothing: it keeps the
  buffer of its first data input alive. Parameters are there throughout. What
  ends at one moment is gone before what starts then comes.
* Every op runs once: the body of a while loop counts as one iteration, and both
  branches of a condition run.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import weakref

import numpy as np

from gdp_grappler import native
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import cost_model as cost_model_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation import schedule as schedule_lib
from gdp_grappler.graph import op_graph

# Ops whose output is their first input's buffer, or memory of a variable.
_ALIASES = frozenset((
    'Bitcast', 'Enter', 'Exit', 'ExpandDims', 'Identity', 'LoopCond', 'Merge',
    'NextIteration', 'PreventGradient', 'ReadVariableOp', 'RefEnter', 'RefExit',
    'RefIdentity', 'RefMerge', 'RefNextIteration', 'RefSwitch', 'Reshape',
    'Snapshot', 'Squeeze', 'StopGradient', 'Switch', 'VarHandleOp', 'Variable',
    'VariableV2'))


class Simulator:
  """Prices placements on one cluster; deterministic.

  What does not depend on the placement is prepared once per graph and kept as
  long as the graph lives. May be used from several threads at once.

  Attributes:
    cluster: The devices that placements index.
    cost_model: Seconds of each op.
    threads: How many placements are simulated side by side.
  """

  def __init__(self, cluster: cluster_lib.Cluster,
               cost_model: cost_model_lib.CostModel | None = None,
               threads: int | None = None):
    """Initializes a Simulator.

    Args:
      cluster: The devices.
      cost_model: Seconds of each op; by default the roofline.
      threads: By default one per core.

    Raises:
      ValueError: `threads` is not positive.
    """
    if threads is not None and threads < 1:
      raise ValueError(f'threads is {threads}; give 1 or more.')
    self.cluster = cluster
    self.cost_model = cost_model or cost_model_lib.CostModel()
    self.threads = threads or os.cpu_count() or 1
    self._prepared = weakref.WeakKeyDictionary()
    self._lock = threading.Lock()

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Prices one placement; see `evaluator.Evaluator`.

    Raises:
      ValueError: the placement is on another cluster.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    self._check_cluster(placement)
    if placement.devices.shape != (graph.num_ops,):
      return self._broken(graph, placement)
    return self.evaluate_many(graph, placement.devices[None])[0]

  def evaluate_many(self, graph: op_graph.OpGraph, devices: np.ndarray
                   ) -> list[evaluator.Evaluation]:
    """Prices K placements, int [K, N].

    Raises:
      ValueError: the array has another shape or is not of integers.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    devices = _checked_devices(graph, devices, 2)
    seconds, peaks = self.step_times(graph, devices)
    results = []
    for k, step_time_s in enumerate(seconds.tolist()):
      if np.isinf(step_time_s):
        results.append(self._broken(
            graph, placement_lib.Placement(devices[k], self.cluster)))
      else:
        results.append(evaluator.Evaluation(
            step_time_s, tuple(peaks[k].tolist()), self._overfull(peaks[k]),
            simulated=True))
    return results

  def step_times(self, graph: op_graph.OpGraph, devices: np.ndarray
                ) -> tuple[np.ndarray, np.ndarray]:
    """Bare prices of K placements, int [K, N], for searches.

    Returns:
      Step times float64 [K] in seconds, infinite where a rule of the graph is
      broken (memory is not looked at), and peaks int64 [K, P] in bytes.

    Raises:
      ValueError: the array has another shape or is not of integers.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    devices = _checked_devices(graph, devices, 2)
    return self._prepare(graph).run(devices, self.threads)

  def schedule(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> schedule_lib.Schedule:
    """Everything that happens in the simulated step.

    Raises:
      ValueError: the placement is on another cluster, has not one device per
        op, or breaks a rule of the graph.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    self._check_cluster(placement)
    result = self._prepare(graph).schedule(
        _checked_devices(graph, placement.devices, 1))
    if result is None:
      first = placement.violations(graph)[0].message
      raise ValueError(f'This placement has no schedule: {first}.')
    return result

  def _check_cluster(self, placement):
    if placement.cluster is not self.cluster and (
        placement.cluster != self.cluster):
      raise ValueError(
          f'The placement is on cluster "{placement.cluster.name}", the '
          f'simulator is for "{self.cluster.name}".')

  def _broken(self, graph, placement) -> evaluator.Evaluation:
    return evaluator.Evaluation(
        float('inf'), (0,) * len(self.cluster.pool_bytes),
        placement.violations(graph), simulated=True)

  def _overfull(self, peaks) -> tuple[placement_lib.Violation, ...]:
    capacity = self.cluster.pool_bytes
    if (peaks <= capacity).all():
      return ()
    return tuple(
        placement_lib.Violation(
            'memory', f'{self._pool_name(pool)} needs '
            f'{peaks[pool] - capacity[pool]} bytes more than its '
            f'{capacity[pool]} (peak {peaks[pool]})')
        for pool in np.flatnonzero(peaks > capacity))

  def _pool_name(self, pool) -> str:
    return ' + '.join(
        device.short_name for device, p in zip(
            self.cluster.devices, self.cluster.memory_pools) if p == pool)

  def _prepare(self, graph) -> _PreparedGraph:
    with self._lock:
      prepared = self._prepared.get(graph)
      if prepared is None:
        prepared = _PreparedGraph(graph, self.cluster, self._seconds(graph))
        self._prepared[graph] = prepared
      return prepared

  def _seconds(self, graph) -> np.ndarray:
    seconds = np.ascontiguousarray(
        self.cost_model.op_seconds(graph, self.cluster), np.float64)
    shape = graph.num_ops, self.cluster.num_devices
    if seconds.shape != shape:
      raise ValueError(f'The cost model gave {seconds.shape}, not {shape}.')
    wrong = np.argwhere(~(np.isfinite(seconds) & (seconds >= 0)))
    if wrong.size:
      op, device = wrong[0]
      raise ValueError(
          f'The cost model charges {seconds[op, device]} s for '
          f'"{graph.names[op]}" on {self.cluster.devices[device].short_name}.')
    return seconds


class _PreparedGraph:
  """A graph as the native simulator keeps it. Holds no reference to it."""

  def __init__(self, graph, cluster, seconds):
    self._lib = _library()
    self._num_ops = graph.num_ops
    self._num_pools = len(cluster.pool_bytes)
    aliases = np.array([t in _ALIASES for t in graph.op_types], np.uint8)
    allowed = np.ascontiguousarray(
        constraints.allowed_devices(graph, cluster), np.uint8)
    latency_s, bytes_per_s, channels = cluster.link_arrays
    native_graph = _NativeGraph(
        graph.num_ops, len(graph.edges), len(graph.tensor_ops),
        graph.num_groups, *map(_address, (
            graph.edges, graph.edge_tensors, graph.tensor_ops,
            graph.tensor_bytes, graph.param_bytes, aliases, graph.groups,
            graph.topological_order)))
    native_cluster = _NativeCluster(
        cluster.num_devices, cluster.compute_units.max() + 1, self._num_pools,
        channels.max() + 1, *map(_address, (
            cluster.compute_units, cluster.memory_pools, latency_s,
            bytes_per_s, channels)))
    self._handle = self._lib.gdp_simulator_create(
        ctypes.byref(native_graph), ctypes.byref(native_cluster),
        _address(allowed), _address(seconds))
    if not self._handle:
      raise MemoryError('No memory for the simulator.')
    weakref.finalize(self, self._lib.gdp_simulator_destroy, self._handle)

  def run(self, devices, threads) -> tuple[np.ndarray, np.ndarray]:
    """Step times [K] and peaks [K, P] of int32 [K, N]."""
    seconds = np.empty(len(devices), np.float64)
    peaks = np.empty((len(devices), self._num_pools), np.int64)
    if self._lib.gdp_simulator_run(
        self._handle, len(devices), _address(devices), threads,
        _address(seconds), _address(peaks)):
      raise MemoryError('No memory for the simulator.')
    return seconds, peaks

  def schedule(self, devices) -> schedule_lib.Schedule | None:
    """None if int32 [N] breaks a rule of the graph."""
    seconds = np.empty(1, np.float64)
    peaks = np.empty(self._num_pools, np.int64)
    result = self._lib.gdp_schedule_create(
        self._handle, _address(devices), _address(seconds), _address(peaks))
    if not result:
      raise MemoryError('No memory for the simulator.')
    try:
      return (None if np.isinf(seconds[0])
              else self._read(result, float(seconds[0]), peaks))
    finally:
      self._lib.gdp_schedule_destroy(result)

  def _read(self, result, step_time_s, peaks) -> schedule_lib.Schedule:
    sent = self._lib.gdp_schedule_num_transfers(result)
    points = self._lib.gdp_schedule_num_memory_points(result)
    start_s, end_s = np.empty(self._num_ops), np.empty(self._num_ops)
    transfers = np.empty((sent, 4), np.int32)
    transfer_s = np.empty((sent, 2))
    memory_s = np.empty(points)
    memory_pools = np.empty(points, np.int32)
    memory_bytes = np.empty(points, np.int64)
    self._lib.gdp_schedule_read(self._handle, result, *map(_address, (
        start_s, end_s, transfers, transfer_s, memory_s, memory_pools,
        memory_bytes)))
    return schedule_lib.Schedule(
        step_time_s, peaks, start_s, end_s, *transfers.T, *transfer_s.T,
        memory_s, memory_pools, memory_bytes)


def _checked_devices(graph, devices, rank) -> np.ndarray:
  """Contiguous int32, of `rank` axes whose last is N."""
  devices = np.asarray(devices)
  if devices.ndim != rank or devices.shape[-1] != graph.num_ops:
    wanted = ('K, ' if rank == 2 else '') + str(graph.num_ops)
    raise ValueError(f'devices has shape {list(devices.shape)} where '
                     f'[{wanted}] is needed for graph "{graph.name}".')
  if not np.issubdtype(devices.dtype, np.integer):
    raise ValueError(f'devices is {devices.dtype}; give integers.')
  if devices.dtype != np.int32:
    # What does not fit stays out of range instead of wrapping round.
    limits = np.iinfo(np.int32)
    devices = devices.clip(max(limits.min, np.iinfo(devices.dtype).min),
                           min(limits.max, np.iinfo(devices.dtype).max))
  return np.ascontiguousarray(devices, np.int32)


class _NativeGraph(ctypes.Structure):
  """`GdpGraph` of simulator.cc."""
  _fields_ = [(name, ctypes.c_int32) for name in (
      'num_ops', 'num_edges', 'num_tensors', 'num_groups')] + [
          (name, ctypes.c_void_p) for name in (
              'edges', 'edge_tensors', 'tensor_ops', 'tensor_bytes',
              'param_bytes', 'aliases', 'groups', 'order')]


class _NativeCluster(ctypes.Structure):
  """`GdpCluster` of simulator.cc."""
  _fields_ = [(name, ctypes.c_int32) for name in (
      'num_devices', 'num_units', 'num_pools', 'num_channels')] + [
          (name, ctypes.c_void_p) for name in (
              'units', 'pools', 'latency_s', 'bytes_per_s', 'channels')]


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load_simulator()
  pointer, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
  for name, result, arguments in (
      ('gdp_simulator_create', pointer, [pointer] * 4),
      ('gdp_simulator_destroy', None, [pointer]),
      ('gdp_simulator_run', i32,
       [pointer, i64, pointer, i32, pointer, pointer]),
      ('gdp_schedule_create', pointer, [pointer] * 4),
      ('gdp_schedule_destroy', None, [pointer]),
      ('gdp_schedule_num_transfers', i64, [pointer]),
      ('gdp_schedule_num_memory_points', i64, [pointer]),
      ('gdp_schedule_read', None, [pointer] * 9)):
    function = getattr(lib, name)
    function.restype, function.argtypes = result, arguments
  return lib


def _address(array: np.ndarray) -> int:
  """Where a C-contiguous array begins; the caller keeps the array."""
  assert array.flags.c_contiguous
  return array.ctypes.data
