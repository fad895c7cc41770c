"""The functions of `move_drawer.cc` over NumPy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import weakref

import numpy as np

from gdp_grappler import native


@dataclasses.dataclass(frozen=True, eq=False)
class MoveLayout:
  """G groups with E directed edges on D devices.

  Attributes:
    starts: int32 [G + 1], where the edges of each group begin.
    neighbours: int32 [E], the group at the other end of each edge.
    eagerness: float64 [E], probability that a growing set joins the neighbour.
    order: int32 [M], groups with more than one device, in topological order.
    units: int32 [U, G], the unit of each group on each of U levels, from 0.
    scopes: int32 [S, G], the name scope of each group on S levels, from 0.
    axes: int32 [A, G], coordinates from 0.
    seconds: float64 [G, D], not negative.
    allowed: bool [D, G], whether each device is legal for each group.
    accelerators: bool [D], devices that get work with preference.
  """

  starts: np.ndarray
  neighbours: np.ndarray
  eagerness: np.ndarray
  order: np.ndarray
  units: np.ndarray
  scopes: np.ndarray
  axes: np.ndarray
  seconds: np.ndarray
  allowed: np.ndarray
  accelerators: np.ndarray


class NativeDrawer:
  """Draws moves of the groups of one graph.

  One thread at a time may use an object.
  """

  def __init__(self, layout: MoveLayout, num_kinds: int) -> None:
    """Copies the layout.

    Args:
      layout: G groups on D devices.
      num_kinds: Number of kinds of moves; the kinds have numbers from 0.

    Raises:
      MemoryError: there is not enough memory.
    """
    self._lib = _library()
    assert self._lib.gdp_move_drawer_kinds() == num_kinds
    self._num_kinds, self._num_groups = num_kinds, len(layout.starts) - 1
    native_layout = native.struct(  # `GdpMoveLayout` of move_sets.h.
        num_groups=self._num_groups, num_edges=len(layout.neighbours),
        num_devices=len(layout.accelerators), num_movable=len(layout.order),
        num_units=len(layout.units), num_scopes=len(layout.scopes),
        num_axes=len(layout.axes), starts=native.i32(layout.starts),
        neighbours=native.i32(layout.neighbours),
        eagerness=native.f64(layout.eagerness), order=native.i32(layout.order),
        units=native.i32(layout.units), scopes=native.i32(layout.scopes),
        axes=native.i32(layout.axes), seconds=native.f64(layout.seconds),
        allowed=native.u8(layout.allowed),
        accelerators=native.u8(layout.accelerators))
    self._handle = self._lib.gdp_move_drawer_create(ctypes.byref(native_layout))
    if not self._handle:
      raise MemoryError('No memory to draw moves.')
    # A thread may still be in C++ when the program exits.
    weakref.finalize(self, self._lib.gdp_move_drawer_destroy,
                     self._handle).atexit = False

  def draw(self, kinds: np.ndarray, devices: np.ndarray, seed: int,
           compound: float, usual: np.ndarray) -> np.ndarray:
    """int32 [K, G], placements after K moves from one placement.

    Args:
      kinds: int [K], kind of each move.
      devices: int [G], the placement before the moves, legal; not changed. The
        loads of the devices are computed anew only if this placement differs
        from that of the last call.
      seed: Seed of the moves, less than 2^64.
      compound: Probability that one more move is added to a move; less than 1.
        After each added move, another one is added with the same probability.
      usual: float64 [kinds], cumulative probabilities of the kinds of added
        moves.

    Raises:
      MemoryError: there is not enough memory.
    """
    kinds, devices = (
        np.ascontiguousarray(of, np.int32) for of in (kinds, devices))
    usual = np.ascontiguousarray(usual, np.float64)
    assert devices.shape == (self._num_groups,)
    assert usual.shape == (self._num_kinds,)
    result = np.empty((len(kinds), self._num_groups), np.int32)
    if self._lib.gdp_move_drawer_draw(self._handle, devices.ctypes.data,
                                      len(kinds), kinds.ctypes.data, compound,
                                      usual.ctypes.data, seed,
                                      result.ctypes.data):
      raise MemoryError('No memory to draw moves.')
    return result


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.MOVES)
  pointer, i32, i64 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
  f64, u64 = ctypes.c_double, ctypes.c_uint64
  native.declare(
      lib, {
          'gdp_move_drawer_kinds': (i32, []),
          'gdp_move_drawer_create': (pointer, [pointer]),
          'gdp_move_drawer_destroy': (None, [pointer]),
          'gdp_move_drawer_draw':
              (i32,
               [pointer, pointer, i64, pointer, f64, pointer, u64, pointer]),
      })
  return lib
