"""A slow, simple version of the simulator.

It follows the rules in the docstring of `evaluation.simulation.simulator` word
for word. At each moment it checks all ops and transfers. It computes memory
afterwards from the lifetimes of buffers. It shares no code and no data
structure with the simulator under test. Transfers are in `reference_transfers`,
memory is in `reference_memory`.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.graph import op_graph
from helpers import reference_cards
from helpers import reference_memory
from helpers import reference_threads
from helpers import reference_transfers


class ReferenceSimulator:
  """Simulates one placement at construction.

  Attributes:
    step_time: Time of the step, in seconds.
    start: Start of each op, in seconds.
    end: End of each op, in seconds.
    slot: Slot of each op in its compute unit.
    transfers: Transfers in the order of their requests.
    works: Works of devices for transfers, in the order in which they were due.
    memory: The use of memories.
  """

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               seconds: np.ndarray, devices, aliases=(), priorities=None,
               workspace: np.ndarray | None = None, buses=None, contention=None,
               dispatch_factors=None, launches=None, poll_factors=None,
               host_work=None, card_shares=None):
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
      contention: [D], `Contention.shares`, or None for 0.
      dispatch_factors: [N], factor of the time in which a thread dispatches an
        op and sends its outputs; None for 1.
      launches: [N], kernels of an op in a step; None for one in each run.
      host_work: [N], further work of the host, in dispatches; None for 0.
      card_shares: [N, D], share of its card that an op can use; None for all.
      poll_factors: [N], factor of `poll_s` for copies of an op's outputs; None
        for 1.
    """
    self.graph, self.cluster = graph, cluster
    self.seconds, self.devices = seconds, [int(d) for d in devices]
    self.priorities = [0.0] * graph.num_ops if priorities is None else [
        float(priority) for priority in priorities
    ]
    self.buses = buses or range(cluster.num_devices)
    self.contention = contention or [0.0] * cluster.num_devices
    self.runs = np.maximum(graph.executions, 1)
    zeros = np.zeros(graph.num_ops)
    self.dispatch_factors = reference_cards.either(dispatch_factors, zeros + 1)
    self.launches = reference_cards.either(launches, self.runs)
    self.host_work = reference_cards.either(host_work, zeros)
    self.card_shares = reference_cards.either(card_shares,
                                              np.ones(seconds.shape))
    self.cards, self.fed = reference_cards.Cards(), [0.0] * len(self.contention)
    self.locks = dict.fromkeys(cluster.contexts.tolist(), 0.0)
    self.places = reference_memory.Places(graph, cluster, self.devices)
    self.edges = reference_memory.edges_of(graph)
    self.inputs = [[edge for edge in self.edges if edge.consumer == op]
                   for op in range(graph.num_ops)]
    self.rank = {int(op): i for i, op in enumerate(graph.topological_order)}
    self.chained = [
        device.asynchronous and priorities is None for device in cluster.devices
    ]
    self.ready, self.start, self.end, self.slot = {}, {}, {}, {}
    self.allocated, self.released, self.dispatched = {}, {}, {}
    self.works, self.chains, self.constants, self.ended = [], [], [], set()
    self.root_chains, self.roots = {}, {}  # Roots that no thread has taken up.
    self.wires = reference_transfers.Wires(cluster, poll_factors)
    self.transfers = self.wires.transfers
    self.step_time = max([self._run(), *self.end.values()])
    self.memory = reference_memory.Memory(graph, cluster, self.devices, aliases,
                                          workspace, self.allocated,
                                          self.released, self.transfers)

  def _run(self) -> float:
    """Runs the step, and returns the time of the last event."""
    now = self.cluster.step_s
    for device, chained in enumerate(self.chained):
      roots = [
          op for op in self.graph.topological_order.tolist()
          if self.devices[op] == device and not self.inputs[op]
      ]
      if chained:
        self.ready |= dict.fromkeys(roots, now)
        self.chains.append(reference_threads.Chain(device, roots, now))
        self.root_chains[device] = self.chains[-1]
        self.roots[device] = list(roots)
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
          self.wires.due(stream) for stream in self.wires.streams
          if self.wires.due(stream) is not None
      ]
      later += [chain.due for chain in self.chains]
      if not later:
        return now
      now = min(later)
      while self._happen(now):
        pass

  def _running(self) -> list[int]:
    """Returns the running ops of units, in topological order."""
    return sorted(
        (op for op in self.start
         if op not in self.ended and not self.chained[self.devices[op]]),
        key=self.rank.get)

  def _happen(self, now: float) -> bool:
    """Runs the first event of this moment; returns False if there is none."""
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
        due = [s for s in self.wires.streams if self.wires.due(s) == now]
        if due:
          self.wires.start_copy(min(due), now)
          return True
      for number, transfer in enumerate(self.transfers):
        if (transfer.done == now and not transfer.over and
            self.wires.streamed(transfer) == on_stream):
          self._receive(number, transfer, now)
          return True
    for chain in self.chains:
      if chain.due == now:
        self._go_on(chain, now)
        return True
    return False

  def _go_on(self, chain: reference_threads.Chain, now: float) -> None:
    """Lets a thread that has dispatched an item take up its next item."""
    if isinstance(chain.current, int):
      self.released[chain.current] = now
      self._send(chain.current, now, chain)
    if not chain.queue:
      self.chains.remove(chain)
      return
    item = chain.current = chain.queue.pop(0)
    if item in self.roots[chain.device]:
      self.roots[chain.device].remove(item)
    host = self.cluster.devices[chain.device]
    factor = self.dispatch_factors[item if isinstance(item, int) else item.op]
    if isinstance(item, int):
      chain.due = self._dispatch(item, chain.device, factor, now)
    elif item.tensor is None and item not in self.constants:
      self.constants.append(item)
      chain.queue.append(item)
      chain.due = now + factor * host.visit_s
    else:
      seconds = factor * host.copy_dispatch_s
      held = seconds * host.lock_s / host.dispatch_s if host.dispatch_s else 0
      chain.due = self._hold_lock(chain.device, now + (seconds - held), held)
      self.wires.issue(item, now, chain.due)

  def _dispatch(self, op: int, device: int, factor: float, now: float) -> float:
    """Puts an op on its compute stream; returns the end of the dispatch."""
    host = self.cluster.devices[device]
    unit = self.cluster.compute_units[device]
    self.allocated[op], self.slot[op] = now, 0
    seconds, runs = self.seconds[op, device], self.runs[op]
    if not seconds:
      self.start[op] = self.end[op] = now + factor * runs * host.visit_s
      return self.start[op]
    prepared = (runs * (host.dispatch_s - host.lock_s)
                + self.host_work[op] * host.dispatch_s)
    done = self._hold_lock(device,
                           max(now, self.fed[device]) + factor * prepared,
                           factor * self.launches[op] * host.lock_s)
    self.fed[device] = self.dispatched[op] = done
    gap = host.gap_s + self._busy_others(device, now) * host.switch_s
    filled = self.wires.filled[unit]
    self.start[op], self.end[op] = self._on_card(
        op, device,
        max(done, filled + gap) if filled else done, seconds + (runs - 1) * gap)
    self.wires.filled[unit] = self.end[op]
    return done

  def _on_card(self, op: int, device: int, start: float, seconds: float):
    return self.cards.run(self.cluster.cut_cards[device],
                          self.card_shares[op, device], start, seconds)

  def _hold_lock(self, device: int, wanted: float, seconds: float) -> float:
    """Takes the lock of a context; returns the moment of its release."""
    if not seconds:
      return wanted
    context = self.cluster.contexts[device]
    self.locks[context] = max(wanted, self.locks[context]) + seconds
    return self.locks[context]

  def _busy_others(self, device: int, now: float) -> int:
    """Counts the busy streams of a context, without a device's own kernels."""
    contexts, units = self.cluster.contexts, self.cluster.compute_units
    card = [
        d for d in range(self.cluster.num_devices) if
        self.cluster.devices[d].asynchronous and contexts[d] == contexts[device]
    ]
    if len(card) == 1:
      return 0
    computing = sum(
        units[d] != units[device] and self.wires.filled[units[d]] > now
        for d in card)
    return computing + sum(self.wires.is_sending(d, now) for d in card)

  def _arrive(self, transfer: reference_transfers.Transfer, now: float) -> None:
    """Delivers a transfer, and dispatches ops that waited only for it."""
    transfer.arrived = True
    key = transfer.op, transfer.tensor, transfer.target, transfer.reader
    for op in self._ready_by([e for e in self.edges if self._key(e) == key]):
      self._start_thread(op, now)

  def _start_thread(self, op: int, now: float) -> None:
    """Dispatches an op that no thread of its device has made ready."""
    if self.chained[self.devices[op]]:
      self.ready[op] = now
      self.chains.append(reference_threads.Chain(self.devices[op], [op], now))

  def _ready_by(self, edges: list[reference_memory.Edge]) -> list[int]:
    """Returns consumers with all inputs, in the order of their last edges."""
    consumers = [edge.consumer for edge in edges]
    # The last mention of each.
    order = list(dict.fromkeys(reversed(consumers)))[::-1]
    return [op for op in order if self._has_all(op)]

  def _has_all(self, op: int) -> bool:
    return all(self._has(edge) for edge in self.inputs[op])

  def _has(self, edge: reference_memory.Edge) -> bool:
    place = self.places.read(edge)
    if self.places.made(edge) == place:
      return edge.producer in self.ended
    return any(
        t.arrived and self._key(edge) == (t.op, t.tensor, t.target, t.reader)
        for t in self.transfers)

  def _key(self, edge: reference_memory.Edge) -> tuple[int | None, ...]:
    """Edges of one key share a transfer, if they need one."""
    return (edge.producer, edge.tensor, self.places.read(edge),
            self.devices[edge.consumer])

  def _mark_ready(self, now: float) -> None:
    for op in range(self.graph.num_ops):
      if (op not in self.ready and not self.chained[self.devices[op]] and
          self._has_all(op)):
        self.ready[op] = now

  def _fill_slots(self, unit: int, now: float) -> None:
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
        self.start[op], self.end[op] = self._on_card(
            op, device, now,
            self.seconds[op, device] * self._slowdown(device, now))
        self.start[op], self.slot[op] = now, free[0]
        self.allocated[op] = self.dispatched[op] = now
        if self.cluster.devices[device].asynchronous:
          self.wires.filled[unit] = self.end[op]
      else:
        return

  def _slowdown(self, device: int, now: float) -> float:
    """Returns the slowdown by other units of the bus that are busy."""
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

  def _send(self, op: int, now: float,
            chain: reference_threads.Chain | None = None) -> None:
    """Sends the outputs of an op, by the thread that dispatched the op."""
    self.ended.add(op)
    # Control edges come last.
    edges = sorted((edge for edge in self.edges if edge.producer == op),
                   key=lambda edge: float('inf')
                   if edge.tensor is None else edge.tensor)
    stays = [self.places.made(edge) == self.places.read(edge) for edge in edges]
    direct = [edge for edge, here in zip(edges, stays) if here]
    ready, last = self._ready_by(direct), {e.consumer: e for e in direct}
    sent = set()
    for edge, here in zip(edges, stays):
      source, target = self.places.made(edge), self.places.read(edge)
      if here:
        if edge.consumer not in ready or edge is not last[edge.consumer]:
          continue
        if chain and self.devices[edge.consumer] == chain.device:
          self.ready[edge.consumer] = now
          chain.queue.append(edge.consumer)
        else:
          self._start_thread(edge.consumer, now)
      elif self._key(edge) not in sent:
        sent.add(self._key(edge))
        transfer = reference_transfers.Transfer(
            edge.tensor, op, source, target, self.devices[edge.consumer],
            0 if edge.tensor is None else reference_memory.tensor_bytes(
                self.graph, edge.tensor))
        self.transfers.append(transfer)
        seconds = self.wires.copy_seconds(source, transfer)
        if chain:
          chain.queue.append(transfer)
        elif seconds:
          self.works.append(
              reference_threads.Work(
                  len(self.transfers) - 1, source, True, now, seconds))
        else:
          self._issue(transfer, now)

  def _issue(self, transfer: reference_transfers.Transfer, now: float) -> None:
    """Issues a transfer that no thread of the sender issues."""
    sends = self.cluster.devices[transfer.source].asynchronous
    if not sends and self.roots.get(transfer.target):
      # The receiver has not asked for it yet, and does so among its roots.
      self.constants.append(transfer)
      self.root_chains[transfer.target].queue.append(transfer)
      return
    seconds = self.cluster.devices[transfer.target].copy_dispatch_s
    self.wires.issue(transfer, now, now if sends else now + seconds)

  def _receive(self, number: int, transfer: reference_transfers.Transfer,
               now: float) -> None:
    transfer.over = True
    seconds = self.wires.copy_seconds(transfer.target, transfer)
    if seconds:
      self.works.append(
          reference_threads.Work(number, transfer.target, False, now, seconds))
    else:
      self._arrive(transfer, now)
