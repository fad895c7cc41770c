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

# Result of the C functions if memory is short. Success is 0.
_OUT_OF_MEMORY = 1
_CYCLE = 2  # Result of the C functions if edges form a cycle.


@dataclasses.dataclass(frozen=True)
class Rules:
  """The rules of a list scheduler.

  Of tasks that are equally good, the scheduler takes the task with the highest
  upward rank, then the first one in topological order.

  Attributes:
    queues: Transfers queue for the channels of their link, as in the simulator,
      and may use gaps between transfers that were planned before. Without
      queues and ports, transfers do not wait for each other.
    ports: In place of `queues`: every device sends or receives one tensor at a
      time, in the order in which transfers are planned. Links do not matter. A
      sender does not wait until the receiver is free.
    in_order: Upward ranks do not count.
    earliest_finish: A task gets the device on which its bundle would end first,
      if the bundle ran without interruption. Otherwise a task gets the device
      on which it starts first. On equal devices both rules are the same.
    local_first: Of the tasks that can start at the same time, the task with the
      least data to fetch from other devices is next.
    insert: HEFT: tasks are taken by rank, and each gets the gap in which it
      ends first. Otherwise ETF: the task that can start first is next.
    favourites: ETF: after a task, its device waits for the favourite child.
    thorough: ETF: before a task is chosen, its start is always estimated again,
      because other tasks may have delayed its transfers. Otherwise the number
      of second estimates is limited if there are very many tasks (`kManyTasks`
      in earliest_task_first.h).
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
    """The rules as a bit mask, `Option` of list_scheduler.cc."""
    return sum(bit for bit, on in ((1, self.queues), (2, self.earliest_finish),
                                   (4, self.local_first), (8, self.favourites),
                                   (16, self.insert), (32, self.ports),
                                   (64, self.in_order), (128, self.thorough))
               if on)


@dataclasses.dataclass(frozen=True, eq=False)
class ListSchedule:
  """The result of a list scheduler.

  Attributes:
    devices: int32 [M], the device of each task.
    start_s: float64 [M], start of each task, in seconds.
    end_s: float64 [M], end of each task, in seconds.
  """

  devices: np.ndarray
  start_s: np.ndarray
  end_s: np.ndarray


def run(tasks: task_graph.TaskGraph, cluster: cluster_lib.Cluster,
        bundle_bytes: np.ndarray, pool_bytes: np.ndarray, rules: Rules,
        favourites: np.ndarray | None = None) -> ListSchedule:
  """Schedules all tasks.

  A bundle gets the device of its first task, and takes its memory at once. A
  bundle that fits into no memory gets the device with the least overflow.

  Args:
    tasks: M tasks.
    cluster: D devices.
    bundle_bytes: [B], bytes of each bundle.
    pool_bytes: [P], capacity of each memory, in bytes.
    rules: The rules of the scheduler.
    favourites: int32 [M], favourite children or -1, for `Rules.favourites`.

  Raises:
    ValueError: the tasks form a cycle.
    MemoryError: there is not enough memory for the computation.
  """
  slots = np.ones(cluster.compute_units.max() + 1, np.int32)
  np.maximum.at(slots, cluster.compute_units,
                [device.slots for device in cluster.devices])
  copy_s = [device.copy_s for device in cluster.devices]
  copy_rates = [
      np.inf if d.copy_bytes_per_s is None else d.copy_bytes_per_s
      for d in cluster.devices
  ]
  latency_s, bytes_per_s, channels = cluster.link_arrays
  if favourites is None:
    favourites = np.full(tasks.num_tasks, -1)
  native_tasks = native.struct(  # `GdpTasks` of schedule_state.h.
      num_tasks=tasks.num_tasks, num_tensors=len(tasks.tensor_tasks),
      num_uses=len(tasks.uses), num_bundles=tasks.num_bundles,
      tensor_task=native.i32(tasks.tensor_tasks),
      tensor_bytes=native.i64(tasks.tensor_bytes), uses=native.i32(tasks.uses),
      bundle=native.i32(tasks.bundles), bundle_bytes=native.i64(bundle_bytes),
      allowed=native.u8(tasks.allowed), seconds=native.f64(tasks.seconds),
      favourite=native.i32(favourites))
  machines = native.struct(  # `GdpMachines` of schedule_state.h.
      num_devices=cluster.num_devices, num_units=len(slots),
      num_pools=len(cluster.pool_bytes), num_channels=channels.max() + 1,
      channels_per_link=channels.shape[-1],
      units=native.i32(cluster.compute_units),
      pools=native.i32(cluster.memory_pools), slots=native.i32(slots),
      copy_s=native.f64(copy_s), copy_bytes_per_s=native.f64(copy_rates),
      latency_s=native.f64(latency_s), bytes_per_s=native.f64(bytes_per_s),
      channels=native.i32(channels), pool_bytes=native.i64(pool_bytes))
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
    depth_first: The task that became ready last is next. Otherwise the task
      that became ready first is next.

  Raises:
    ValueError: the tasks form a cycle.
    MemoryError: there is not enough memory.
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

  A target is full when it has an equal share of the bytes that may be on any
  target, or no room left. If a bundle may not be on the current target or finds
  no room there, the bundle goes to the next target that may have it and has
  room, or else to the target with the least overflow. A bundle that may be on
  no target goes to another device with room, or else to the device with the
  least overflow.

  Args:
    order: int [B], the order of the bundles.
    size: [B], bytes of each bundle.
    allowed: bool [B, D], devices that each bundle may have.
    targets: int [t], the devices to fill, in this order.
    pools: int [D], the memory of each device.
    pool_bytes: [P], capacity of each memory, in bytes.

  Raises:
    MemoryError: there is not enough memory.
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
  """int32 [M], labels: tasks with equal labels are joined to one task.

  The label is a member of the joined task. A task with one consumer is joined
  with the consumer in two cases: the task is the consumer's only producer, or
  the task with all tasks that it was joined with takes at most `grain` times as
  long as the transfer of its results. Both tasks must be of one kind. No cycle
  arises, because all results of a joined task come from its last member.

  Args:
    pairs: int [E, 2], different pairs of producer and consumer. All pairs into
      a task precede the pairs out of the task.
    sent_s: [E], seconds of the transfer of each pair.
    work_s: [M], seconds of each task.
    kinds: int [M], kind of each task. Tasks of one kind may have the same
      devices.
    grain: Limit of the seconds of a task, in seconds of its transfer.

  Raises:
    MemoryError: there is not enough memory.
  """
  return _labels('gdp_fuse', pairs, sent_s, work_s, kinds, grain)


def join(pairs: np.ndarray, worth_s: np.ndarray, work_s: np.ndarray,
         kinds: np.ndarray, limit_s: float) -> np.ndarray:
  """int32 [B], labels: bundles with equal labels are joined to one bundle.

  The label is the member with the lowest number.

  Args:
    pairs: int [E, 2], bundles to join, in this order.
    worth_s: [E], seconds. If one bundle of a pair has at most this work, the
      pair is joined even if the joined bundle exceeds the limit.
    work_s: [B], seconds of each bundle.
    kinds: int [B], kind of each bundle; only bundles of one kind are joined.
    limit_s: Largest work of a joined bundle, in seconds.

  Raises:
    MemoryError: there is not enough memory.
  """
  return _labels('gdp_join', pairs, worth_s, work_s, kinds, limit_s)


def favourites(pairs: np.ndarray, sent_s: np.ndarray, work_s: np.ndarray,
               limits: Sequence[float]) -> np.ndarray:
  """int32 [2, M], favourite children that shorten the longest path, or -1.

  A task has at most one favourite child, and is the favourite child of at most
  one parent. Each limit gives one matching, which uses the path lengths that
  the previous matching leaves. A matching first takes pairs on paths longer
  than the limit, in decreasing length of their paths. Then it takes the other
  pairs, in decreasing length of their transfers. The first row is the matching
  with the shortest critical path. The second row has only pairs that are in all
  matchings.

  Args:
    pairs: int [E, 2], different pairs of parent and child, as positions in
      topological order; sorted by the parent.
    sent_s: [E], seconds of the transfer that a favourite child saves.
    work_s: [M], seconds of each task, by position.
    limits: Limit of each matching, from 0 to 1. 0 is the longest path without
      any transfer; 1 is the shortest critical path so far.

  Raises:
    MemoryError: there is not enough memory.
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


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.LIST_SCHEDULER)
  pointer, i32 = ctypes.c_void_p, ctypes.c_int32
  real = ctypes.c_double
  labels = i32, [i32, i32, *[pointer] * 4, real, pointer]
  native.declare(
      lib, {
          'gdp_list_schedule': (i32, [pointer, pointer, i32, *[pointer] * 3]),
          'gdp_topological_order':
              (i32, [*[i32] * 3, pointer, pointer, i32, pointer]),
          'gdp_fill': (i32, [*[i32] * 4, *[pointer] * 6, real, pointer]),
          'gdp_favourites':
              (i32, [i32, i32, *[pointer] * 3, i32, *[pointer] * 3]),
          'gdp_fuse': labels,
          'gdp_join': labels,
      })
  return lib
