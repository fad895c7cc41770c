"""The functions of `move_features.cc` over NumPy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref

import numpy as np

from gdp_grappler import cores
from gdp_grappler import native
from gdp_grappler.features.moves import schema


@dataclasses.dataclass(frozen=True, eq=False)
class FeatureLayout:
  """A graph of N ops, T tensors and G groups on D devices.

  Attributes:
    edges: int32 [E, 2], producer and consumer.
    edge_tensors: int32 [E], tensor of each edge; -1 for a control edge.
    tensor_bytes: float64 [T], bytes of each tensor.
    groups: int32 [N], group of each op.
    order: int32 [N], ops with producers before consumers.
    seconds: float64 [N, D], seconds of each op on each device.
    memory_bytes: float64 [N], bytes that an op holds.
    latency_s: float64 [D, D], seconds from the start of a message until its
      receiver knows of it, without the time for its bytes.
    bytes_per_s: float64 [D, D], bandwidth of each link.
    pools: int32 [D], memory of each device.
    pool_bytes: float64 [P], capacity of each memory.
    units: int32 [D], compute unit of each device.
    serial: uint8 [U], whether a compute unit runs one op at a time.
  """

  edges: np.ndarray
  edge_tensors: np.ndarray
  tensor_bytes: np.ndarray
  groups: np.ndarray
  order: np.ndarray
  seconds: np.ndarray
  memory_bytes: np.ndarray
  latency_s: np.ndarray
  bytes_per_s: np.ndarray
  pools: np.ndarray
  pool_bytes: np.ndarray
  units: np.ndarray
  serial: np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class Observed:
  """A placement and its simulated step, with M transfers.

  Attributes:
    devices: int32 [G], device of each group.
    start_s: float64 [N], start of each op.
    end_s: float64 [N], end of each op.
    step_s: Step time, positive.
    transfer_tensors: int32 [M], the tensor; -1 for a control edge.
    transfer_ops: int32 [M], the producer.
    transfer_targets: int32 [M], the receiving device.
    transfer_arrival_s: float64 [M], when the receiver can use the tensor.
    peak_bytes: float64 [P], peak use of each memory.
  """

  devices: np.ndarray
  start_s: np.ndarray
  end_s: np.ndarray
  step_s: float
  transfer_tensors: np.ndarray
  transfer_ops: np.ndarray
  transfer_targets: np.ndarray
  transfer_arrival_s: np.ndarray
  peak_bytes: np.ndarray


class NativeFeatures:
  """A graph on a cluster, and the placement from which moves are made.

  An object is for one thread at a time.
  """

  def __init__(self, layout: FeatureLayout) -> None:
    """Prepares the arrays of the graph.

    Raises:
      MemoryError: there is not enough memory.
    """
    self._lib, self._threads = _library(), cores.own()
    self._num_groups = int(layout.groups.max(initial=-1)) + 1
    arrays = [
        np.ascontiguousarray(getattr(layout, name), dtype)
        for name, dtype in _LAYOUT
    ]
    graph = _NativeGraph(len(layout.groups), len(layout.edges),
                         len(layout.tensor_bytes), self._num_groups,
                         len(layout.pools), len(layout.pool_bytes),
                         len(layout.serial),
                         *(array.ctypes.data for array in arrays))
    # `arrays` keeps the addresses valid until the call returns.
    self._handle = self._lib.gdp_move_features_create(ctypes.byref(graph))
    if not self._handle:
      raise MemoryError('No memory for the features of moves.')
    # A thread may still be in C++ when the program exits.
    weakref.finalize(self, self._lib.gdp_move_features_destroy,
                     self._handle).atexit = False

  def observe(self, observed: Observed) -> None:
    """Sets the placement from which the next moves are made.

    Raises:
      MemoryError: there is not enough memory.
    """
    arrays = {
        name: np.ascontiguousarray(getattr(observed, name), dtype)
        for name, dtype in _OBSERVED
    }
    schedule = _NativeSchedule(
        *(arrays[name].ctypes.data for name in ('devices', 'start_s', 'end_s')),
        observed.step_s, len(arrays['transfer_ops']),
        *(arrays[name].ctypes.data for name, _ in _OBSERVED[3:]))
    if self._lib.gdp_move_features_observe(self._handle,
                                           ctypes.byref(schedule)):
      raise MemoryError('No memory for the features of moves.')

  def describe(self, devices: np.ndarray) -> np.ndarray:
    """Returns `schema.NATIVE` [K, F] of K moves to placements int [K, G].

    Raises:
      MemoryError: there is not enough memory.
    """
    devices = np.ascontiguousarray(devices, np.int32)
    assert devices.shape[1:] == (self._num_groups,)
    result = np.empty((len(devices), len(schema.NATIVE)), np.float32)
    if self._lib.gdp_move_features_describe(self._handle, len(devices),
                                            devices.ctypes.data, self._threads,
                                            result.ctypes.data):
      raise MemoryError('No memory for the features of moves.')
    return result


# In the order of the fields of `GdpMoveGraph` and `GdpMoveSchedule`.
_LAYOUT = (('edges', np.int32), ('edge_tensors', np.int32), ('tensor_bytes',
                                                             np.float64),
           ('groups', np.int32), ('order', np.int32), ('seconds', np.float64),
           ('memory_bytes', np.float64), ('latency_s', np.float64),
           ('bytes_per_s', np.float64), ('pools', np.int32),
           ('pool_bytes', np.float64), ('units', np.int32), ('serial',
                                                             np.uint8))
_OBSERVED = (('devices', np.int32), ('start_s', np.float64),
             ('end_s', np.float64), ('transfer_tensors', np.int32),
             ('transfer_ops', np.int32), ('transfer_targets', np.int32),
             ('transfer_arrival_s', np.float64), ('peak_bytes', np.float64))


class _NativeGraph(ctypes.Structure):
  """The struct `GdpMoveGraph` of move_graph.h."""
  _fields_ = [(name, ctypes.c_int32)
              for name in ('num_ops', 'num_edges', 'num_tensors', 'num_groups',
                           'num_devices', 'num_pools', 'num_units')
             ] + [(name, ctypes.c_void_p) for name, _ in _LAYOUT]


class _NativeSchedule(ctypes.Structure):
  """The struct `GdpMoveSchedule` of move_incumbent.h."""
  _fields_ = [
      (name, ctypes.c_void_p) for name in ('devices', 'start_s', 'end_s')
  ] + [('step_s', ctypes.c_double)] + [('num_transfers', ctypes.c_int32)] + [
      (name, ctypes.c_void_p) for name, _ in _OBSERVED[3:]
  ]


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
