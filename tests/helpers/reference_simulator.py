"""The simulator once more, slow and written for the reader.

It follows the rules in the docstring of `gdp_grappler.evaluation.simulator`
word for word: at each moment it looks at everything, and memory is worked out
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
  """A tensor (or None, a control edge) on its way to another device."""
  tensor: int | None
  op: int
  source: int
  target: int
  bytes: int
  start: float
  end: float
  arrived: bool = False


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
    transfers: In the order of their requests.
    buffers: All that ever lived.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               seconds: np.ndarray, devices, aliases=()):
    """Runs the simulation.

    Args:
      graph: The graph.
      cluster: The cluster.
      seconds: [N, D].
      devices: [N].
      aliases: Op types that hand on their first input's buffer.
    """
    self.graph, self.cluster = graph, cluster
    self.seconds, self.devices = seconds, [int(d) for d in devices]
    self.aliases = aliases
    self.edges = [(int(p), int(c), None if t < 0 else int(t)) for (p, c), t in
                  zip(graph.edges, graph.edge_tensors)]
    self.inputs = [[(p, t) for p, c, t in self.edges if c == op]
                   for op in range(graph.num_ops)]
    self.rank = {int(op): i for i, op in enumerate(graph.topological_order)}
    self.ready, self.start, self.end = {}, {}, {}
    self.transfers, self.ended = [], set()
    self._run()
    self.step_time = max(self.end.values(), default=0.0)
    self.buffers = self._lifetimes()

  def peak(self) -> list[int]:
    """Highest use of each pool."""
    pools = range(len(self.cluster.pool_bytes))
    return [max(v for _, v in self.curve(pool)) for pool in pools]

  def live(self, time: float, pool: int) -> int:
    """Sum of what lives in a pool at a time."""
    return self._resident(pool) + sum(
        b.bytes for b in self.buffers
        if b.pool == pool and b.start <= time < b.end)

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
    return sum(int(self.graph.param_bytes[op])
               for op in range(self.graph.num_ops)
               if self._pool(self.devices[op]) == pool)

  def _pool(self, device):
    return int(self.cluster.memory_pools[device])

  def _run(self):
    now = 0.0
    while True:
      self._mark_ready(now)
      for unit in sorted(set(self.cluster.compute_units.tolist())):
        self._start_op(unit, now)
      later = [self.end[op] for op in self.start if op not in self.ended]
      later += [t.end for t in self.transfers if not t.arrived]
      if not later:
        break
      now = min(later)
      self._arrive(now)
      ending = [op for op in self.start
                if op not in self.ended and self.end[op] == now]
      for op in sorted(ending, key=self.rank.get):
        self.ended.add(op)
        self._send(op, now)
      self._arrive(now)

  def _arrive(self, now):
    for transfer in self.transfers:
      transfer.arrived |= transfer.end == now

  def _has(self, device, producer, tensor):
    if self.devices[producer] == device:
      return producer in self.ended
    return any(t.arrived and (t.op, t.tensor, t.target)
               == (producer, tensor, device) for t in self.transfers)

  def _mark_ready(self, now):
    for op in range(self.graph.num_ops):
      if op not in self.ready and all(
          self._has(self.devices[op], producer, tensor)
          for producer, tensor in self.inputs[op]):
        self.ready[op] = now

  def _start_op(self, unit, now):
    mine = [op for op in self.ready
            if self.cluster.compute_units[self.devices[op]] == unit]
    if any(op in self.start and op not in self.ended for op in mine):
      return
    waiting = [op for op in mine if op not in self.start]
    if waiting:
      op = min(waiting, key=lambda op: (self.ready[op], self.rank[op]))
      self.start[op] = now
      self.end[op] = now + self.seconds[op, self.devices[op]]

  def _send(self, op, now):
    tensors = sorted({t for p, _, t in self.edges if p == op and t is not None})
    for tensor in tensors + [None]:
      targets = dict.fromkeys(self.devices[c] for p, c, t in self.edges
                              if p == op and t == tensor)
      for target in targets:
        if target != self.devices[op]:
          self._request(op, tensor, target, now)

  def _request(self, op, tensor, target, now):
    source = self.devices[op]
    size = 0 if tensor is None else int(self.graph.tensor_bytes[tensor])
    latency, bandwidth, channels = (
        array[source, target] for array in self.cluster.link_arrays)
    start, duration = now, latency
    if size:
      duration = latency + size / bandwidth
      for other in self.transfers:
        theirs = self.cluster.link_arrays[2][other.source, other.target]
        if other.bytes and set(theirs) & set(channels):
          start = max(start, other.end)
    self.transfers.append(Transfer(tensor, op, source, target, size, start,
                                   start + duration))

  def _lifetimes(self):
    """Buffers; an alias prolongs its input's instead of having its own."""
    local, received = {}, {}
    for op in self.graph.topological_order.tolist():
      handed_on = None
      inputs = [(p, t) for p, t in self.inputs[op] if t is not None]
      if self.graph.op_types[op] in self.aliases and inputs:
        producer, tensor = inputs[0]
        handed_on = (local[tensor]
                     if self.devices[producer] == self.devices[op]
                     else received[tensor, self.devices[op]])
      for tensor in np.flatnonzero(self.graph.tensor_ops == op).tolist():
        if self.graph.op_types[op] in self.aliases:
          local[tensor] = handed_on
        else:
          local[tensor] = Buffer(
              int(self.graph.tensor_bytes[tensor]),
              self._pool(self.devices[op]), self.start[op], self.end[op])
        for t in self.transfers:
          if t.tensor == tensor:
            received[tensor, t.target] = Buffer(
                t.bytes, self._pool(t.target), t.start, t.end)
            _prolong(local[tensor], t.end)
        for _, consumer, t in self.edges:
          if t == tensor:
            device = self.devices[consumer]
            _prolong(local[tensor] if device == self.devices[op]
                     else received[tensor, device], self.end[consumer])
    unique = {id(b): b for b in [*local.values(), *received.values()] if b}
    return list(unique.values())


def _prolong(buffer, time):
  if buffer is not None:
    buffer.end = max(buffer.end, time)
