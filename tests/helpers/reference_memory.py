"""Computes the use of memories in a simulated step after the simulation.

A part of `reference_simulator`.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping, Sequence

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph
from helpers import reference_transfers


@dataclasses.dataclass
class Buffer:
  """Memory from `start` until `end`, exclusive."""
  bytes: int
  pool: int
  start: float
  end: float


@dataclasses.dataclass
class Memory:
  """Memories during a step that has been played.

  Attributes:
    graph: The graph.
    cluster: The cluster.
    devices: [N].
    aliases: Types of ops whose output is the buffer of their first input.
    workspace: [N, D], bytes; None for none.
    allocated: Time at which the outputs and workspace of an op are allocated.
    released: Time at which an op releases its inputs and its workspace.
    transfers: All transfers of the step.
    buffers: All buffers of the step.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  devices: Sequence[int]
  aliases: Sequence[str]
  workspace: np.ndarray | None
  allocated: Mapping[int, float]
  released: Mapping[int, float]
  transfers: Sequence[reference_transfers.Transfer]

  def __post_init__(self) -> None:
    self.buffers = self._lifetimes()

  def peak(self) -> list[int]:
    """Returns the highest use of each pool."""
    pools = range(len(self.cluster.pool_bytes))
    return [max(v for _, v in self.curve(pool)) for pool in pools]

  def live(self, time: float, pool: int) -> int:
    """Returns the bytes in use of a pool at a time."""
    return self._resident(pool) + sum(
        b.bytes
        for b in self.buffers if b.pool == pool and b.start <= time < b.end)

  def curve(self, pool: int) -> list[tuple[float, int]]:
    """Returns (time, use from this time on) at every change, from 0 on."""
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

  def _resident(self, pool: int) -> int:
    constant = [self._is_constant(op) for op in range(self.graph.num_ops)]
    held = np.maximum(np.where(constant, self.graph.output_bytes, 0),
                      self.graph.param_bytes)
    return sum(
        int(held[op]) for op in range(self.graph.num_ops)
        if self._pool(self.devices[op]) == pool)

  def _pool(self, device: int) -> int:
    return int(self.cluster.memory_pools[device])

  def _is_constant(self, op: int) -> bool:
    return self.graph.op_types[op] == 'Const'

  def _is_alias(self, op: int) -> bool:
    return (self.graph.op_types[op] in self.aliases and
            self.graph.executions[op] > 0)

  def _lifetimes(self) -> list[Buffer]:
    """Returns the buffers; an alias extends the life of its input's buffer."""
    local, received, workspace = {}, {}, []
    places = Places(self.graph, self.cluster, self.devices)
    edges = [edge for edge in edges_of(self.graph) if edge.tensor is not None]
    for op in self.graph.topological_order.tolist():
      handed_on = None
      inputs = [edge for edge in edges if edge.consumer == op]
      if self._is_alias(op) and inputs:
        handed_on = _read(inputs[0], places, local, received)
      pool = self._pool(self.devices[op])
      if self.workspace is not None and self.graph.executions[op] > 0:
        workspace.append(
            Buffer(int(self.workspace[op, self.devices[op]]), pool,
                   self.allocated[op], self.released[op]))
      for tensor in np.flatnonzero(self.graph.tensor_ops == op).tolist():
        own = not self._is_alias(op) and not self._is_constant(op)
        local[tensor] = handed_on if not own else Buffer(
            tensor_bytes(self.graph, tensor),
            self._pool(places.of_tensor(tensor)), self.allocated[op],
            self.released[op])
        for t in self.transfers:
          if t.tensor == tensor:
            received[tensor, t.target,
                     t.reader] = Buffer(t.bytes, self._pool(t.target),
                                        t.taken_up, t.done)
            _prolong(local[tensor], t.done)
        for edge in edges:
          if edge.tensor == tensor:
            _prolong(_read(edge, places, local, received),
                     self.released[edge.consumer])
    unique = {id(b): b for b in [*local.values(), *received.values()] if b}
    return [*unique.values(), *workspace]


@dataclasses.dataclass(frozen=True)
class Edge:
  """An edge of the graph; `tensor` is None for a control edge."""
  producer: int
  consumer: int
  tensor: int | None
  read_on_host: bool


class Places:
  """Says in the memory of which device tensors are made and read."""

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               devices: Sequence[int]):
    self._graph, self._devices = graph, devices
    machines = [name.rpartition('/')[0] for name in cluster.device_names]
    cpus = {
        machine: number for number, machine in enumerate(machines)
        if cluster.devices[number].type == 'CPU' and
        not cluster.devices[number].asynchronous
    }
    self._hosts = [
        cpus.get(machine, number) if d.type == 'GPU' else number
        for number, (machine, d) in enumerate(zip(machines, cluster.devices))
    ]

  def of_op(self, op: int) -> int:
    """The device of an op."""
    return self._devices[op]

  def of_tensor(self, tensor: int) -> int:
    """The device in whose memory a tensor is made."""
    device = self._devices[self._graph.tensor_ops[tensor]]
    return self._hosts[device] if self._graph.made_on_host[tensor] else device

  def made(self, edge: Edge) -> int:
    """The device that has the tensor, or sends the message, of an edge."""
    if edge.tensor is None:
      return self._devices[edge.producer]
    return self.of_tensor(edge.tensor)

  def read(self, edge: Edge) -> int:
    """The device in whose memory the consumer reads."""
    device = self._devices[edge.consumer]
    return self._hosts[device] if edge.read_on_host else device


def edges_of(graph: op_graph.OpGraph) -> list[Edge]:
  """Returns all edges; dead inputs of Merges last.

  A Switch, which has a dead output, comes before the dead ones.
  """

  def lateness(edge: Edge) -> int:
    if graph.op_types[edge.consumer] != 'Merge' or edge.tensor is None:
      return 0
    if not graph.executions[edge.producer]:
      return 2
    return int(graph.op_types[edge.producer] == 'Switch')

  return sorted((Edge(int(p), int(c), None if t < 0 else int(t), bool(h)) for (
      p, c), t, h in zip(graph.edges, graph.edge_tensors, graph.read_on_host)),
                key=lateness)


def _read(edge: Edge, places: Places, local: Mapping[int, Buffer | None],
          received: Mapping[tuple[int, int, int], Buffer]) -> Buffer | None:
  """The buffer that the consumer of an edge reads."""
  place = places.read(edge)
  if place == places.made(edge):
    return local[edge.tensor]
  return received[edge.tensor, place, places.of_op(edge.consumer)]


def tensor_bytes(graph: op_graph.OpGraph, tensor: int) -> int:
  """Returns the bytes of a tensor; 0 if its op does not run."""
  producer = graph.tensor_ops[tensor]
  return int(
      graph.tensor_bytes[tensor]) if graph.executions[producer] > 0 else 0


def _prolong(buffer: Buffer | None, time: float) -> None:
  if buffer is not None:
    buffer.end = max(buffer.end, time)
