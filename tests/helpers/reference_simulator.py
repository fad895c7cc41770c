"""The simulator once more, slow and written for the reader.

It follows the rules in the docstring of `evaluation.simulation.simulator` word
for word: at each moment it looks at everything, and memory is worked out
afterwards from the lifetimes of the buffers. It shares no code and no data
structure with the one under test.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass
class Transfer:
  """A tensor (or None, a control edge) on its way to another device.

  Times are None until they are known. `start` to `end` it is on the link.
  """
  tensor: int | None
  op: int
  source: int
  target: int
  bytes: int
  start: float | None = None
  end: float | None = None
  arrived: bool = False


@dataclasses.dataclass
class Work:
  """What a device does itself for the transfer of that number."""
  number: int
  device: int
  sends: bool
  due: float
  seconds: float
  start: float | None = None
  end: float | None = None
  slot: int | None = None
  done: bool = False


@dataclasses.dataclass
class Buffer:
  """Memory from `start` until `end`, exclusive."""
  bytes: int
  pool: int
  start: float
  end: float


class ReferenceSimulator:
  """Simulates one placement at construction.

  Attributes:
    step_time: Seconds.
    start: op -> seconds.
    end: op -> seconds.
    slot: op -> slot of its compute unit.
    transfers: In the order of their requests.
    works: In the order in which they fell due.
    buffers: All that ever lived.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               seconds: np.ndarray, devices, aliases=(), priorities=None,
               workspace: np.ndarray | None = None, buses=None,
               contention=None):
    """Runs the simulation.

    Args:
      graph: The graph.
      cluster: The cluster.
      seconds: [N, D].
      devices: [N].
      aliases: Op types that hand on their first input's buffer.
      priorities: [N], or None for first in, first out.
      workspace: [N, D] bytes, or None for none.
      buses: [D], devices with one number share a bus; None for none.
      contention: [D], what is slowed by others of the bus, or None.
    """
    self.graph, self.cluster = graph, cluster
    self.seconds, self.devices = seconds, [int(d) for d in devices]
    self.aliases, self.workspace = aliases, workspace
    self.priorities = [0.0] * graph.num_ops if priorities is None else [
        float(priority) for priority in priorities
    ]
    self.buses = buses or range(cluster.num_devices)
    self.contention = contention or [0.0] * cluster.num_devices
    self.edges = [(int(p), int(c), None if t < 0 else int(t))
                  for (p, c), t in zip(graph.edges, graph.edge_tensors)]
    self.inputs = [[(p, t) for p, c, t in self.edges if c == op]
                   for op in range(graph.num_ops)]
    self.rank = {int(op): i for i, op in enumerate(graph.topological_order)}
    self.ready, self.start, self.end, self.slot = {}, {}, {}, {}
    self.transfers, self.works, self.ended = [], [], set()
    self._run()
    self.step_time = max(self.end.values(), default=cluster.step_s)
    self.buffers = self._lifetimes()

  def peak(self) -> list[int]:
    """Highest use of each pool."""
    pools = range(len(self.cluster.pool_bytes))
    return [max(v for _, v in self.curve(pool)) for pool in pools]

  def live(self, time: float, pool: int) -> int:
    """Sum of what lives in a pool at a time."""
    return self._resident(pool) + sum(
        b.bytes
        for b in self.buffers if b.pool == pool and b.start <= time < b.end)

  def curve(self, pool: int) -> list[tuple[float, int]]:
    """(time, use from then on) at every change, from time 0 on."""
    changes = {0.0: self._resident(pool)}
    for b in self.buffers:
      if b.pool == pool:
        changes[b.start] = changes.get(b.start, 0) + b.bytes
        changes[b.end] = changes.get(b.end, 0) - b.bytes
    total, result = 0, []
    for time in sorted(changes):
      total += changes[time]
      if not result or changes[time]:
        result.append((time, total))
    return result

  def _resident(self, pool):
    return sum(
        int(self.graph.param_bytes[op]) for op in range(self.graph.num_ops)
        if self._pool(self.devices[op]) == pool)

  def _pool(self, device):
    return int(self.cluster.memory_pools[device])

  def _bytes(self, tensor):
    """Tensors of ops that do not run are empty."""
    producer = self.graph.tensor_ops[tensor]
    return (int(self.graph.tensor_bytes[tensor])
            if self.graph.executions[producer] > 0 else 0)

  def _is_alias(self, op):
    return (self.graph.op_types[op] in self.aliases and
            self.graph.executions[op] > 0)

  def _run(self):
    now = self.cluster.step_s
    while True:
      self._mark_ready(now)
      for unit in sorted(set(self.cluster.compute_units.tolist())):
        self._fill_slots(unit, now)
      later = [self.end[op] for op in self.start if op not in self.ended]
      later += [w.end for w in self.works if w.start is not None and not w.done]
      later += [
          t.end for t in self.transfers
          if t.end is not None and not self._is_over(t)
      ]
      if not later:
        break
      now = min(later)
      ending = [
          op for op in self.start
          if op not in self.ended and self.end[op] == now
      ]
      for op in sorted(ending, key=self.rank.get):
        self.ended.add(op)
        self._send(op, now)
      worked = [w for w in self.works if not w.done and w.end == now]
      for work in sorted(worked, key=lambda w: w.number):
        work.done = True
        if work.sends:
          self._request(self.transfers[work.number], now)
        else:
          self.transfers[work.number].arrived = True
      for number, transfer in enumerate(self.transfers):
        if transfer.end == now and not self._is_over(transfer):
          self._receive(number, transfer, now)

  def _is_over(self, transfer):
    """Nothing is on the link any more, and the receiver knows."""
    return transfer.arrived or any(
        not w.sends and self.transfers[w.number] is transfer
        for w in self.works)

  def _has(self, device, producer, tensor):
    if self.devices[producer] == device:
      return producer in self.ended
    return any(
        t.arrived and (t.op, t.tensor, t.target) == (producer, tensor, device)
        for t in self.transfers)

  def _mark_ready(self, now):
    for op in range(self.graph.num_ops):
      if op not in self.ready and all(
          self._has(self.devices[op], producer, tensor)
          for producer, tensor in self.inputs[op]):
        self.ready[op] = now

  def _fill_slots(self, unit, now):
    members = [
        d for d in range(self.cluster.num_devices)
        if self.cluster.compute_units[d] == unit
    ]
    slots = range(max(self.cluster.devices[d].slots for d in members))
    while True:
      taken = {
          self.slot[op] for op in self.start
          if op not in self.ended and self.devices[op] in members
      }
      taken |= {
          w.slot for w in self.works
          if w.start is not None and not w.done and w.device in members
      }
      free = [slot for slot in slots if slot not in taken]
      owed = [w for w in self.works if w.start is None and w.device in members]
      waiting = [
          op for op in self.ready
          if op not in self.start and self.devices[op] in members
      ]
      if free and owed:
        work = min(owed, key=lambda w: (w.due, w.number))
        work.end = now + work.seconds * self._slowdown(work.device, now)
        work.start, work.slot = now, free[0]
      elif free and waiting:
        op = min(
            waiting, key=lambda op:
            (-self.priorities[op], self.ready[op], self.rank[op]))
        device = self.devices[op]
        self.end[op] = now + (self.seconds[op, device]
                              * self._slowdown(device, now))
        self.start[op], self.slot[op] = now, free[0]
      else:
        return

  def _slowdown(self, device, now):
    """By other units of the bus that are in the middle of something."""
    unit = self.cluster.compute_units
    running = [
        (self.devices[op], self.start[op], self.end[op]) for op in self.start
    ]
    running += [
        (w.device, w.start, w.end) for w in self.works if w.start is not None
    ]
    others = {
        unit[d] for d, start, end in running if start < now < end and
        unit[d] != unit[device] and self.buses[d] == self.buses[device]
    }
    return 1 + len(others) * self.contention[device]

  def _send(self, op, now):
    tensors = sorted({t for p, _, t in self.edges if p == op and t is not None})
    for tensor in tensors + [None]:
      targets = dict.fromkeys(
          self.devices[c] for p, c, t in self.edges if p == op and t == tensor)
      for target in targets:
        if target != self.devices[op]:
          transfer = Transfer(tensor, op, self.devices[op], target,
                              0 if tensor is None else self._bytes(tensor))
          self.transfers.append(transfer)
          seconds = self._copy_seconds(transfer.source, transfer)
          if seconds:
            self.works.append(
                Work(
                    len(self.transfers) - 1, transfer.source, True, now,
                    seconds))
          else:
            self._request(transfer, now)

  def _receive(self, number, transfer, now):
    seconds = self._copy_seconds(transfer.target, transfer)
    if seconds:
      self.works.append(Work(number, transfer.target, False, now, seconds))
    else:
      transfer.arrived = True

  def _copy_seconds(self, device, transfer):
    device = self.cluster.devices[device]
    if device.copy_bytes_per_s is None:
      return device.copy_s
    return device.copy_s + transfer.bytes / device.copy_bytes_per_s

  def _request(self, transfer, now):
    link = self._link(transfer)
    start, duration = now, link.latency_s
    if transfer.bytes:
      duration = link.latency_s + transfer.bytes / link.bandwidth_bytes_per_s
      for other in self.transfers:
        if other.bytes and other.end is not None and (
            set(self._link(other).channels) & set(link.channels)):
          start = max(start, other.end)
    transfer.start, transfer.end = start, start + duration

  def _link(self, transfer):
    names = self.cluster.device_names
    return next(l for l in self.cluster.links
                if (l.source, l.target) == (names[transfer.source],
                                            names[transfer.target]))

  def _lifetimes(self):
    """Buffers; an alias prolongs its input's instead of having its own."""
    local, received, workspace = {}, {}, []
    for op in self.graph.topological_order.tolist():
      handed_on = None
      inputs = [(p, t) for p, t in self.inputs[op] if t is not None]
      if self._is_alias(op) and inputs:
        producer, tensor = inputs[0]
        handed_on = (local[tensor] if self.devices[producer] == self.devices[op]
                     else received[tensor, self.devices[op]])
      pool = self._pool(self.devices[op])
      if self.workspace is not None and self.graph.executions[op] > 0:
        workspace.append(
            Buffer(int(self.workspace[op, self.devices[op]]), pool,
                   self.start[op], self.end[op]))
      for tensor in np.flatnonzero(self.graph.tensor_ops == op).tolist():
        local[tensor] = handed_on if self._is_alias(op) else Buffer(
            self._bytes(tensor), pool, self.start[op], self.end[op])
        for t in self.transfers:
          if t.tensor == tensor:
            received[tensor, t.target] = Buffer(t.bytes, self._pool(t.target),
                                                t.start, t.end)
            _prolong(local[tensor], t.end)
        for _, consumer, t in self.edges:
          if t == tensor:
            device = self.devices[consumer]
            _prolong(
                local[tensor] if device == self.devices[op] else
                received[tensor, device], self.end[consumer])
    unique = {id(b): b for b in [*local.values(), *received.values()] if b}
    return [*unique.values(), *workspace]


def _prolong(buffer, time):
  if buffer is not None:
    buffer.end = max(buffer.end, time)
