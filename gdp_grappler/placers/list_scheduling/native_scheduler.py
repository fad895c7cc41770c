"""The functions of `list_scheduler.cc` over NumPy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from typing import Sequence

import numpy as np

from gdp_grappler import native
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.placers.list_scheduling import task_graph

_OUT_OF_MEMORY, _CYCLE = 1, 2


@dataclasses.dataclass(frozen=True)
class Rules:
  """How a list scheduler decides.

  The order of tasks that are equally good is that of their upward ranks, then
  the topological one, first in first out.

  Attributes:
    queues: Transfers wait for the channels of their link, in the gaps that
      those planned before leave, as in the simulator. Otherwise all run at
      once.
    ports: In place of `queues`: every device sends or receives one tensor or
      message at a time, in the order in which they are planned, whatever the
      links are. A sender need not wait for the receiver's turn.
    in_order: Ranks count for nothing.
    earliest_finish: A task starts where its bundle, run in one go, would end
      first; otherwise where it starts first. The same on equal devices.
    local_first: Of the tasks that can start at once, the one with least to
      fetch from elsewhere.
    insert: HEFT: tasks by rank, each in the gap where it ends first. Otherwise
      ETF: the task that can start first.
    favourites: ETF: after a task its device waits for its favourite child.
    thorough: ETF: all that waits for a link is looked at again for each task,
      however many there are. Otherwise not so where there are very many.
  """

  queues: bool = True
  ports: bool = False
  in_order: bool = False
  earliest_finish: bool = False
  local_first: bool = False
  favourites: bool = False
  insert: bool = False
  thorough: bool = False

  def bits(self) -> int:
    """The options of list_scheduler.cc."""
    return sum(bit for bit, on in ((1, self.queues), (2, self.earliest_finish),
                                   (4, self.local_first), (8, self.favourites),
                                   (16, self.insert), (32, self.ports),
                                   (64, self.in_order), (128, self.thorough))
               if on)


@dataclasses.dataclass(frozen=True, eq=False)
class ListSchedule:
  """What a list scheduler planned.

  Attributes:
    devices: int32 [M]
    start_s: float64 [M]
    end_s: float64 [M]
  """

  devices: np.ndarray
  start_s: np.ndarray
  end_s: np.ndarray


def run(tasks: task_graph.TaskGraph, cluster: cluster_lib.Cluster,
        bundle_bytes: np.ndarray, pool_bytes: np.ndarray, rules: Rules,
        favourites: np.ndarray | None = None) -> ListSchedule:
  """Schedules all tasks.

  A bundle goes where its first task goes, and takes its memory there at once.
  One that fits nowhere goes where it exceeds the memory by least.

  Args:
    tasks: M tasks.
    cluster: D devices.
    bundle_bytes: [B] memory each bundle takes.
    pool_bytes: [P] memory there is.
    rules: How to decide.
    favourites: int32 [M], the favourite child of each task or -1; needed if
      the rules have them.

  Raises:
    ValueError: the tasks form a cycle.
    MemoryError: there is not enough for the computation.
  """
  slots = np.ones(cluster.compute_units.max() + 1, np.int32)
  np.maximum.at(slots, cluster.compute_units,
                [device.slots for device in cluster.devices])
  copy_rates = [
      np.inf if d.copy_bytes_per_s is None else d.copy_bytes_per_s
      for d in cluster.devices
  ]
  latency_s, bytes_per_s, channels = cluster.link_arrays
  if favourites is None:
    favourites = np.full(tasks.num_tasks, -1)
  # Kept until the call returns: the structures hold bare addresses.
  keep = [
      np.ascontiguousarray(array, dtype)
      for array, dtype in ((tasks.tensor_tasks, np.int32), (tasks.tensor_bytes,
                                                            np.int64),
                           (tasks.uses, np.int32), (tasks.bundles, np.int32),
                           (bundle_bytes, np.int64), (tasks.allowed, np.uint8),
                           (tasks.seconds, np.float64), (favourites, np.int32),
                           (cluster.compute_units,
                            np.int32), (cluster.memory_pools,
                                        np.int32), (slots, np.int32),
                           ([d.copy_s for d in cluster.devices],
                            np.float64), (copy_rates, np.float64),
                           (latency_s, np.float64), (bytes_per_s, np.float64),
                           (channels, np.int32), (pool_bytes, np.int64))
  ]
  addresses = [array.ctypes.data for array in keep]
  native_tasks = _Tasks(tasks.num_tasks, len(tasks.tensor_tasks),
                        len(tasks.uses), tasks.num_bundles, *addresses[:8])
  machines = _Machines(cluster.num_devices, len(slots), len(cluster.pool_bytes),
                       channels.max() + 1, channels.shape[-1], *addresses[8:])
  result = ListSchedule(np.empty(tasks.num_tasks, np.int32),
                        np.empty(tasks.num_tasks), np.empty(tasks.num_tasks))
  _check(_library().gdp_list_schedule(ctypes.byref(native_tasks),
                                      ctypes.byref(machines), rules.bits(),
                                      result.devices.ctypes.data,
                                      result.start_s.ctypes.data,
                                      result.end_s.ctypes.data))
  return result


def topological_order(tasks: task_graph.TaskGraph,
                      depth_first: bool = False) -> np.ndarray:
  """int32 [M], producers first.

  Args:
    tasks: M tasks.
    depth_first: What became ready last is next; otherwise first in first out.

  Raises:
    ValueError: the tasks form a cycle.
    MemoryError: there is not enough.
  """
  keep = [
      np.ascontiguousarray(array, np.int32)
      for array in (tasks.tensor_tasks, tasks.uses)
  ]
  result = np.empty(tasks.num_tasks, np.int32)
  _check(_library().gdp_topological_order(
      tasks.num_tasks, len(tasks.tensor_tasks), len(tasks.uses),
      *(array.ctypes.data for array in keep), depth_first, result.ctypes.data))
  return result


def fill(order: np.ndarray, size: np.ndarray, allowed: np.ndarray,
         targets: np.ndarray, pools: np.ndarray,
         pool_bytes: np.ndarray) -> np.ndarray:
  """int32 [B], devices of bundles that fill one target after the other.

  A target is full when it has an equal share of what may be on any of them, or
  no room left. What may not be there, or has no room, goes to the next target
  where it may and has, else to another device; if nothing has room, where it
  exceeds the memory by least.

  Args:
    order: int [B], bundles in the order in which they come.
    size: [B], their bytes.
    allowed: bool [B, D].
    targets: int [t], the devices to fill, in this order.
    pools: int [D], their memories.
    pool_bytes: [P], what these hold.

  Raises:
    MemoryError: there is not enough.
  """
  share = size[allowed[:, targets].any(axis=1)].sum() / len(targets)
  keep = [
      np.ascontiguousarray(array, dtype)
      for array, dtype in ((order, np.int32), (size, np.float64),
                           (allowed, np.uint8), (targets, np.int32),
                           (pools, np.int32), (pool_bytes, np.float64))
  ]
  result = np.empty(len(order), np.int32)
  _check(_library().gdp_fill(len(order), len(pools), len(pool_bytes),
                             len(targets),
                             *(array.ctypes.data for array in keep), share,
                             result.ctypes.data))
  return result


def fuse(pairs: np.ndarray, sent_s: np.ndarray, work_s: np.ndarray,
         kinds: np.ndarray, grain: float) -> np.ndarray:
  """int32 [M], a member of the set that each task is joined into.

  A task with one consumer joins it if it is that one's only producer, or if
  what has been joined into the task so far takes at most `grain` times as long
  as sending its results. Both must be of one kind. No cycle arises: all that
  leaves a joined task leaves its last member.

  Args:
    pairs: int [E, 2], producer and consumer without doubles; all pairs into a
      task precede those out of it.
    sent_s: [E]
    work_s: [M]
    kinds: int [M]
    grain: See above.

  Raises:
    MemoryError: there is not enough.
  """
  return _labels('gdp_fuse', pairs, sent_s, work_s, kinds, grain)


def join(pairs: np.ndarray, worth_s: np.ndarray, work_s: np.ndarray,
         kinds: np.ndarray, limit_s: float) -> np.ndarray:
  """int32 [B], the lowest member of the set that each bundle is joined into.

  Args:
    pairs: int [E, 2], bundles to join in this order.
    worth_s: [E], two sets are joined in spite of the limit if one of them has
      no more work than this.
    work_s: [B]
    kinds: int [B], only bundles of one kind are joined.
    limit_s: Work of a set at most.

  Raises:
    MemoryError: there is not enough.
  """
  return _labels('gdp_join', pairs, worth_s, work_s, kinds, limit_s)


def favourites(pairs: np.ndarray, sent_s: np.ndarray, work_s: np.ndarray,
               limits: Sequence[float]) -> np.ndarray:
  """int32 [2, M], favourite children that make the longest path short, or -1.

  Nobody has two favourites, and nobody is the favourite of two. Pairs are
  matched once for each limit, given the paths of the match before; the best of
  all matches counts. Pairs on paths longer than the limit come first, the
  longest path first; of the others those that send longest. The second row has
  only those of all matches.

  Args:
    pairs: int [E, 2], parent and child without doubles, as positions in
      topological order; ordered by the parent.
    sent_s: [E], what is spared if the child is the favourite.
    work_s: [M], by position.
    limits: From 0, the longest path without any transfer, to 1, the shortest
      that was found yet.

  Raises:
    MemoryError: there is not enough.
  """
  keep = [
      np.ascontiguousarray(array, dtype)
      for array, dtype in ((pairs, np.int32), (sent_s, np.float64),
                           (work_s, np.float64), (limits, np.float64))
  ]
  addresses = [array.ctypes.data for array in keep]
  result = np.empty((2, len(work_s)), np.int32)
  _check(_library().gdp_favourites(len(work_s), len(pairs), *addresses[:3],
                                   len(limits), addresses[3],
                                   *(row.ctypes.data for row in result)))
  return result


def _labels(function: str, pairs: np.ndarray, pair_s: np.ndarray,
            work_s: np.ndarray, kinds: np.ndarray, number: float) -> np.ndarray:
  keep = [
      np.ascontiguousarray(array, dtype)
      for array, dtype in ((pairs, np.int32), (pair_s, np.float64),
                           (work_s, np.float64), (kinds, np.int32))
  ]
  result = np.empty(len(work_s), np.int32)
  _check(
      getattr(_library(), function)(len(work_s), len(pairs),
                                    *(array.ctypes.data for array in keep),
                                    number, result.ctypes.data))
  return result


def _check(status: int) -> None:
  if status == _OUT_OF_MEMORY:
    raise MemoryError('No memory for the list scheduler.')
  if status == _CYCLE:
    raise ValueError('The tasks form a cycle.')


class _Tasks(ctypes.Structure):
  """`GdpTasks` of schedule_state.h."""
  _fields_ = [
      (name, ctypes.c_int32)
      for name in ('num_tasks', 'num_tensors', 'num_uses', 'num_bundles')
  ] + [(name, ctypes.c_void_p)
       for name in ('tensor_task', 'tensor_bytes', 'uses', 'bundle',
                    'bundle_bytes', 'allowed', 'seconds', 'favourite')]


class _Machines(ctypes.Structure):
  """`GdpMachines` of schedule_state.h."""
  _fields_ = [
      (name, ctypes.c_int32)
      for name in ('num_devices', 'num_units', 'num_pools', 'num_channels',
                   'channels_per_link')
  ] + [(name, ctypes.c_void_p)
       for name in ('units', 'pools', 'slots', 'copy_s', 'copy_bytes_per_s',
                    'latency_s', 'bytes_per_s', 'channels', 'pool_bytes')]


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.LIST_SCHEDULER)
  pointer, i32 = ctypes.c_void_p, ctypes.c_int32
  real = ctypes.c_double
  labels = [i32, i32, *[pointer] * 4, real, pointer]
  for name, arguments in {
      'gdp_list_schedule': [pointer, pointer, i32, *[pointer] * 3],
      'gdp_topological_order': [i32, i32, i32, pointer, pointer, i32, pointer],
      'gdp_fill': [*[i32] * 4, *[pointer] * 6, real, pointer],
      'gdp_favourites': [i32, i32, *[pointer] * 3, i32,
                         *[pointer] * 3], 'gdp_fuse': labels, 'gdp_join': labels
  }.items():
    function = getattr(lib, name)
    function.restype, function.argtypes = i32, arguments
  return lib
