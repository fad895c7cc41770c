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

  Times are None until they are known. `start` to `end` it is on the link, from
  `issued` to `done` both memories hold it; on a stream it waits for its
  `earliest` start.
  """
  tensor: int | None
  op: int
  source: int
  target: int
  bytes: int
  issued: float | None = None
  earliest: float | None = None
  start: float | None = None
  end: float | None = None
  done: float | None = None
  over: bool = False
  arrived: bool = False


@dataclasses.dataclass
class Chain:
  """A thread that dispatches; `queue` has ops and transfers."""
  device: int
  queue: list[int | Transfer]
  due: float
  current: int | Transfer | None = None


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
    self.chained = [
        device.asynchronous and priorities is None for device in cluster.devices
    ]
    self.ready, self.start, self.end, self.slot = {}, {}, {}, {}
    self.allocated, self.released = {}, {}
    self.transfers, self.works, self.ended = [], [], set()
    self.chains, self.constants = [], []
    self.filled = dict.fromkeys(cluster.compute_units.tolist(), 0.0)
    self.streams = {}
    self.step_time = max([self._run(), *self.end.values()])
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

  def _run(self) -> float:
    """Plays the step; when the last thing happened."""
    now = self.cluster.step_s
    for device, chained in enumerate(self.chained):
      roots = [
          op for op in self.graph.topological_order.tolist()
          if self.devices[op] == device and not self.inputs[op]
      ]
      if chained:
        self.ready |= dict.fromkeys(roots, now)
        self.chains.append(Chain(device, roots, now))
    while True:
      self._mark_ready(now)
      for unit in sorted(set(self.cluster.compute_units.tolist())):
        self._fill_slots(unit, now)
      later = [self.end[op] for op in self._running()]
      later += [w.end for w in self.works if w.start is not None and not w.done]
      later += [
          t.done for t in self.transfers if t.done is not None and not t.over
      ]
      later += [
          self._due(stream) for stream in self.streams
          if self._due(stream) is not None
      ]
      later += [chain.due for chain in self.chains]
      if not later:
        return now
      now = min(later)
      while self._happen(now):
        pass

  def _running(self) -> list[int]:
    """Ops of units under way, in topological order."""
    return sorted(
        (op for op in self.start
         if op not in self.ended and not self.chained[self.devices[op]]),
        key=self.rank.get)

  def _happen(self, now: float) -> bool:
    """Lets the first thing of this moment happen; False if there is none."""
    for op in self._running():
      if self.end[op] == now:
        self.released[op] = now
        self._send(op, now)
        return True
    worked = [w for w in self.works if not w.done and w.end == now]
    if worked:
      work = min(worked, key=lambda w: w.number)
      work.done = True
      transfer = self.transfers[work.number]
      if work.sends:
        self._issue(transfer, now)
      else:
        self._arrive(transfer, now)
      return True
    for on_stream in (False, True):
      if on_stream:
        due = [s for s in self.streams if self._due(s) == now]
        if due:
          self._start_copy(min(due), now)
          return True
      for number, transfer in enumerate(self.transfers):
        if (transfer.done == now and not transfer.over and
            self._streamed(transfer) == on_stream):
          self._receive(number, transfer, now)
          return True
    for chain in self.chains:
      if chain.due == now:
        self._go_on(chain, now)
        return True
    return False

  def _go_on(self, chain: Chain, now: float) -> None:
    """A thread has dispatched something and takes up the next."""
    if isinstance(chain.current, int):
      self.released[chain.current] = now
      self._send(chain.current, now, chain)
    if not chain.queue:
      self.chains.remove(chain)
      return
    item = chain.current = chain.queue.pop(0)
    chain.due = now + self.cluster.devices[chain.device].dispatch_s
    if isinstance(item, int):
      unit = self.cluster.compute_units[chain.device]
      self.allocated[item], self.slot[item] = now, 0
      self.start[item] = max(now, self.filled[unit])
      self.end[item] = self.start[item] + self.seconds[item, chain.device]
      self.filled[unit] = self.end[item]
    elif item.tensor is None and item not in self.constants:
      self.constants.append(item)
      chain.queue.append(item)
    else:
      self._issue(item, now)

  def _arrive(self, transfer: Transfer, now: float) -> None:
    """The receiver knows; what waited for nothing else is dispatched."""
    transfer.arrived = True
    if self.chained[transfer.target]:
      for op in self._ready_by(transfer.op, [transfer.tensor], transfer.target):
        self.ready[op] = now
        self.chains.append(Chain(transfer.target, [op], now))

  def _ready_by(self, producer: int, tensors: list[int | None],
                device: int) -> list[int]:
    """Consumers that have all their inputs, in the order of their last edge."""
    consumers = [
        c for tensor in tensors for p, c, t in self.edges
        if (p, t, self.devices[c]) == (producer, tensor, device)
    ]
    # The last mention of each.
    order = list(dict.fromkeys(reversed(consumers)))[::-1]
    return [op for op in order if self._has_all(op)]

  def _has_all(self, op: int) -> bool:
    return all(
        self._has(self.devices[op], producer, tensor)
        for producer, tensor in self.inputs[op])

  def _has(self, device, producer, tensor):
    if self.devices[producer] == device:
      return producer in self.ended
    return any(
        t.arrived and (t.op, t.tensor, t.target) == (producer, tensor, device)
        for t in self.transfers)

  def _mark_ready(self, now):
    for op in range(self.graph.num_ops):
      if (op not in self.ready and not self.chained[self.devices[op]] and
          self._has_all(op)):
        self.ready[op] = now

  def _fill_slots(self, unit, now):
    members = [
        d for d in range(self.cluster.num_devices)
        if self.cluster.compute_units[d] == unit and not self.chained[d]
    ]
    if not members:
      return
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
        self.allocated[op] = now
        if self.cluster.devices[device].asynchronous:
          self.filled[unit] = self.end[op]
      else:
        return

  def _slowdown(self, device, now):
    """By other units of the bus that are in the middle of something."""
    unit = self.cluster.compute_units
    running = [(self.devices[op], self.start[op], self.end[op])
               for op in self.start if not self.chained[self.devices[op]]]
    running += [
        (w.device, w.start, w.end) for w in self.works if w.start is not None
    ]
    others = {
        unit[d] for d, start, end in running if start < now < end and
        unit[d] != unit[device] and self.buses[d] == self.buses[device]
    }
    return 1 + len(others) * self.contention[device]

  def _send(self, op: int, now: float, chain: Chain | None = None) -> None:
    """Hands on what an op made, by the thread that dispatched it if any."""
    self.ended.add(op)
    tensors = sorted({t for p, _, t in self.edges if p == op and t is not None})
    own, ready = self.devices[op], []
    if chain:
      ready = self._ready_by(op, [*tensors, None], own)
    for tensor in tensors + [None]:
      edges = [(e, c) for e, (p, c, t) in enumerate(self.edges)
               if p == op and t == tensor]
      sent = set()
      for e, consumer in edges:
        target = self.devices[consumer]
        if target == own:
          last = max((self._place(t), f)
                     for f, (p, c, t) in enumerate(self.edges)
                     if (p, c) == (op, consumer))
          if consumer in ready and last == (self._place(tensor), e):
            self.ready[consumer] = now
            chain.queue.append(consumer)
        elif target not in sent:
          sent.add(target)
          transfer = Transfer(tensor, op, own, target,
                              0 if tensor is None else self._bytes(tensor))
          self.transfers.append(transfer)
          seconds = self._copy_seconds(own, transfer)
          if chain:
            chain.queue.append(transfer)
          elif seconds:
            self.works.append(
                Work(
                    len(self.transfers) - 1, transfer.source, True, now,
                    seconds))
          else:
            self._issue(transfer, now)

  def _place(self, tensor: int | None) -> float:
    """Control edges come last."""
    return float('inf') if tensor is None else tensor

  def _receive(self, number: int, transfer: Transfer, now: float) -> None:
    transfer.over = True
    seconds = self._copy_seconds(transfer.target, transfer)
    if seconds:
      self.works.append(Work(number, transfer.target, False, now, seconds))
    else:
      self._arrive(transfer, now)

  def _streamed(self, transfer: Transfer) -> bool:
    return any(self.cluster.devices[device].asynchronous
               for device in (transfer.source, transfer.target))

  def _issue(self, transfer: Transfer, now: float) -> None:
    """Requests a transfer, or puts it on a stream."""
    transfer.issued = now
    if not self._streamed(transfer):
      self._request(transfer, now)
      transfer.issued, transfer.done = transfer.start, transfer.end
      return
    sends, receives = (self.cluster.devices[device].asynchronous
                       for device in (transfer.source, transfer.target))
    waits = [now]
    if sends:
      waits.append(self.filled[self.cluster.compute_units[transfer.source]])
    if receives and (transfer.bytes or not sends):
      waits.append(self.filled[self.cluster.compute_units[transfer.target]])
    transfer.earliest = max(waits)
    stream = ((transfer.source, 0 if receives else 1) if sends else
              (transfer.target, 2))
    self.streams.setdefault(stream, []).append(transfer)

  def _due(self, stream: tuple[int, int]) -> float | None:
    """When the first copy of a stream that has not started does so."""
    copies = self.streams[stream]
    first = next((t for t in copies if t.start is None), None)
    if first is None:
      return None
    return max([first.earliest]
               + [t.end for t in copies if t.start is not None and t.bytes])

  def _start_copy(self, stream: tuple[int, int], now: float) -> None:
    transfer = next(t for t in self.streams[stream] if t.start is None)
    self._request(transfer, now)
    device = self.cluster.devices[stream[0]]
    transfer.done = transfer.end + device.callback_s

  def _copy_seconds(self, device: int, transfer: Transfer) -> float:
    device = self.cluster.devices[device]
    if device.copy_bytes_per_s is None:
      return device.copy_s
    return device.copy_s + transfer.bytes / device.copy_bytes_per_s

  def _request(self, transfer: Transfer, now: float) -> None:
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
                   self.allocated[op], self.released[op]))
      for tensor in np.flatnonzero(self.graph.tensor_ops == op).tolist():
        local[tensor] = handed_on if self._is_alias(op) else Buffer(
            self._bytes(tensor), pool, self.allocated[op], self.released[op])
        for t in self.transfers:
          if t.tensor == tensor:
            received[tensor, t.target] = Buffer(t.bytes, self._pool(t.target),
                                                t.issued, t.done)
            _prolong(local[tensor], t.done)
        for _, consumer, t in self.edges:
          if t == tensor:
            device = self.devices[consumer]
            _prolong(
                local[tensor] if device == self.devices[op] else
                received[tensor, device], self.released[consumer])
    unique = {id(b): b for b in [*local.values(), *received.values()] if b}
    return [*unique.values(), *workspace]


def _prolong(buffer, time):
  if buffer is not None:
    buffer.end = max(buffer.end, time)
