"""Features of moves from one placement, computed from its simulated step.

The step is simulated once per placement. Most features of a move then need only
the ops and edges that the move touches. One feature needs a sweep over all ops.
The sweep takes much less time than a simulation. C++ code computes the features
by these rules:

* The slack of an op is the longest delay of its end that does not lengthen the
  step. Two things are assumed: ops of a compute unit that runs one op at a time
  keep their order, and a tensor arrives as long after the end of its producer
  as in the simulated step.
* An op without slack is critical. An op whose slack is a certain small share of
  the step (`kCriticalShare` in move_incumbent.h) counts as half critical.
* The wait of an op lasts from the arrival of its inputs to its start.
* A transfer takes the latency of the link plus the time for its bytes. A net,
  which is one tensor with all its consumers, is sent once to each device.
* An input or output is late if it arrives after the latest start of its
  consumer. The producer is assumed to end as in the simulated step.
* Crowding is the work that leaves the source, as far as it exceeds the free
  time of the target at the same times of the step.
* The *retimed* step is an estimate of the step after the move. In one sweep,
  each op gets a new start. All ops keep the order of their simulated
  dispatches. An op starts when its inputs are there and, on a compute unit that
  runs one op at a time, when all earlier ops of this compute unit have ended.
  On an asynchronous device, a kernel that waits for its inputs lets later
  kernels run before. The host takes its time to dispatch ops and to issue
  copies, and a copy waits for the kernels that both devices have been given
  (`simulator`). A link sends one tensor after the other. The feature is the
  change of this estimate by the move.

No run of the executor is simulated for a move. So the overflow of a memory is
computed from the peak, plus the bytes that arrive, less the bytes that leave.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref

import numpy as np

from gdp_grappler import cores
from gdp_grappler import native
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import busy
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.features.moves import schema
from gdp_grappler.graph import op_graph

_SHORTEST_S = 1e-12  # Least step by which times are divided.


class MoveFeaturizer:
  """Computes features of moves of the G groups of one graph.

  An object is for one thread at a time.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               costs: cost_model.CostModel) -> None:
    """Prepares the arrays of the graph.

    Args:
      graph: N ops in G groups.
      cluster: D devices.
      costs: Costs of the ops.

    Raises:
      MemoryError: there is not enough memory.
    """
    self._graph, self._cluster = graph, cluster
    self._simulator = simulator_lib.Simulator(cluster, costs, threads=1)
    # A receiver knows of a transfer only after the event manager has polled.
    self._hop_s = self._by_link('hop_s')
    layout = self._layout(
        *busy.parts(graph, cluster, costs, self._simulator.op_seconds(graph)))
    self._lib, self._threads = _library(), cores.own()
    self._handle = self._lib.gdp_move_features_create(ctypes.byref(layout))
    _check(not self._handle)
    # A thread may still be in C++ when the program exits.
    weakref.finalize(self, self._lib.gdp_move_features_destroy,
                     self._handle).atexit = False

  def observe(self, devices: np.ndarray,
              priorities: np.ndarray | None = None) -> None:
    """Sets the placement from which the next moves are made.

    Args:
      devices: int [G], a legal placement.
      priorities: float64 [N], priorities of ops; None for first in, first out.

    Raises:
      MemoryError: there is not enough memory.
    """
    placement = dataclasses.replace(
        placement_lib.from_groups(self._graph, devices, self._cluster),
        priorities=priorities)
    step = self._simulator.schedule(self._graph, placement)
    step_s = max(step.step_time_s, _SHORTEST_S)
    arrival_s = self._arrival_s(step)
    i32, f64 = native.i32, native.f64
    schedule = native.struct(  # `GdpMoveSchedule` of move_incumbent.h.
        devices=i32(devices), start_s=f64(step.start_s), end_s=f64(step.end_s),
        dispatched_s=f64(step.dispatched_s), step_s=step_s, num_transfers=len(
            step.transfer_ops), transfer_tensors=i32(step.transfer_tensors),
        transfer_ops=i32(step.transfer_ops),
        transfer_targets=i32(step.transfer_targets),
        transfer_arrival_s=f64(arrival_s), peak_bytes=f64(step.peak_bytes))
    _check(
        self._lib.gdp_move_features_observe(self._handle,
                                            ctypes.byref(schedule)))

  def describe(self, devices: np.ndarray) -> np.ndarray:
    """Returns the features `schema.NATIVE` of K moves, float32 [K, F].

    Args:
      devices: int [K, G], the placement after each move. The features are 0 if
        nothing moves.

    Raises:
      MemoryError: there is not enough memory.
    """
    devices = native.i32(devices)
    assert devices.shape[1:] == (self._graph.num_groups,)
    result = np.empty((len(devices), len(schema.NATIVE)), np.float32)
    _check(
        self._lib.gdp_move_features_describe(self._handle, len(devices),
                                             devices.ctypes.data, self._threads,
                                             result.ctypes.data))
    return result

  def _arrival_s(self, step: schedule_lib.Schedule) -> np.ndarray:
    """Returns when each transferred tensor can be used, float64 [M]."""
    arrival_s = step.transfer_end_s + self._hop_s[step.transfer_sources,
                                                  step.transfer_targets]
    # The work of the receiver for a transfer comes after that of the sender.
    np.maximum.at(arrival_s, step.work_transfers, step.work_end_s)
    return arrival_s

  def _by_link(self, name: str) -> np.ndarray:
    """float64 [D, D], a number of the device whose stream serves each link."""
    devices = self._cluster.devices
    asynchronous = np.array([d.asynchronous for d in devices])
    own = np.array([getattr(d, name) for d in devices], float)
    return np.where(asynchronous[:, None], own[:, None], own[None])

  def _layout(self, own_s: np.ndarray, host_s: np.ndarray) -> ctypes.Structure:
    """`GdpMoveGraph` of move_graph.h, from the two parts of `busy.parts`."""
    graph, cluster = self._graph, self._cluster
    alive = graph.executions > 0
    own = graph.output_bytes * (alive & ~simulator_lib.aliases(graph))
    latency_s, bytes_per_s, _ = cluster.link_arrays
    units = cluster.compute_units
    slots = np.ones(units.max() + 1, int)
    np.maximum.at(slots, units, [device.slots for device in cluster.devices])
    i32, f64 = native.i32, native.f64
    return native.struct(
        num_ops=graph.num_ops, num_edges=len(graph.edges),
        num_tensors=len(graph.tensor_ops), num_groups=graph.num_groups,
        num_devices=cluster.num_devices, num_pools=len(cluster.pool_bytes),
        num_units=len(slots), edges=i32(graph.edges),
        edge_tensors=i32(graph.edge_tensors),
        tensor_bytes=f64(graph.tensor_bytes * alive[graph.tensor_ops]),
        groups=i32(graph.groups), order=i32(graph.topological_order),
        seconds=f64(np.maximum(own_s, host_s)),
        memory_bytes=f64(graph.param_bytes + own), own_s=f64(own_s),
        host_s=f64(host_s), asynchronous=native.u8([
            d.asynchronous for d in cluster.devices
        ]), issue_s=f64(self._by_link('copy_dispatch_s')),
        wire_s=f64(latency_s), callback_s=f64(
            self._by_link('callback_s')), poll_s=f64(self._by_link('poll_s')),
        latency_s=f64(latency_s + self._hop_s), bytes_per_s=f64(bytes_per_s),
        pools=i32(cluster.memory_pools), pool_bytes=f64(
            cluster.pool_bytes), units=i32(units), serial=native.u8(slots == 1))


def _check(failed: bool) -> None:
  if failed:
    raise MemoryError('No memory for the features of moves.')


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.MOVES)
  pointer, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
  native.declare(
      lib, {
          'gdp_move_features_count': (i32, []),
          'gdp_move_features_create': (pointer, [pointer]),
          'gdp_move_features_destroy': (None, [pointer]),
          'gdp_move_features_observe': (i32, [pointer, pointer]),
          'gdp_move_features_describe':
              (i32, [pointer, i64, pointer, i32, pointer]),
      })
  assert lib.gdp_move_features_count() == len(schema.NATIVE)
  return lib
