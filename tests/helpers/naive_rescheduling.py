"""A simple version of the rules by which groups are placed anew."""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from helpers import clusters

BINS = 64


@dataclasses.dataclass(frozen=True)
class Net:
  """A tensor of an op, or all control edges of an op, and the consumers."""

  key: tuple[int, bool]  # The tensor, or the op, and whether of control edges.
  producer: int
  size: float
  consumers: list[int]


@dataclasses.dataclass(frozen=True)
class Choice:
  """A device for a group; the smallest choice is the best."""

  lacks_room: bool
  cost: float
  end_s: float

  def regret(self, best: Choice) -> float:
    """Returns by how much another choice is better, as a share of the cost."""
    if self.lacks_room != best.lacks_room:
      return np.inf
    return (self.cost - best.cost) / max(abs(self.cost), abs(best.cost), 1e-300)


class NaiveRescheduling:
  """A placement and its simulated step, from which moves are made."""

  def __init__(self, graph: op_graph.OpGraph, cluster: cluster_lib.Cluster,
               seconds: np.ndarray, devices: np.ndarray,
               priorities: np.ndarray | None = None) -> None:
    """Simulates the step.

    Args:
      graph: N ops in G groups.
      cluster: D devices.
      seconds: float64 [N, D].
      devices: int [G], legal.
      priorities: float64 [N]; None for first in, first out.
    """
    self._graph, self._cluster = graph, cluster
    self._devices = [int(d) for d in devices]
    placement = placement_lib.from_groups(graph, devices, cluster)
    self._step = simulator_lib.Simulator(
        cluster, clusters.FixedCosts(seconds), threads=1).schedule(
            graph, dataclasses.replace(placement, priorities=priorities))
    self._step_s = max(self._step.step_time_s, 1e-12)
    self._start_s, self._end_s = (
        times.tolist() for times in (self._step.start_s, self._step.end_s))
    self._units = cluster.compute_units.tolist()
    self._is_serial = {
        unit:
            all(d.slots == 1 for d, u in zip(cluster.devices, self._units)
                if u == unit) for unit in self._units
    }
    self._nets = _nets(graph)
    self._work_s = _by_group(graph, seconds)
    alive = graph.executions > 0
    own = graph.output_bytes * (alive & ~simulator_lib.aliases(graph))
    self._bytes = [
        size for size, in _by_group(graph, (graph.param_bytes + own)[:, None])
    ]
    self._ops = [
        np.flatnonzero(graph.groups == g).tolist()
        for g in range(graph.num_groups)
    ]
    self._arrivals = self._received()
    self._latest_s = self._latest_starts()

  def regrets(self, drawn: np.ndarray, taken: np.ndarray, allowed: np.ndarray,
              weights: tuple[float, float, float]) -> list[float]:
    """How much worse than the best each choice is, in the order of choices.

    Of what comes later it is asked under the choices made before.

    Args:
      drawn: int [G], where a move leads.
      taken: int [G], where its groups were placed anew.
      allowed: bool [G, D].
      weights: Of being late, of what is sent, of how busy devices are.
    """
    removed = [g for g, d in enumerate(self._devices) if drawn[g] != d]
    self._take_out(removed)
    result = []
    for group in sorted(removed, key=self._first_s):  # Stable.
      choices = {
          device: self._choice(group, device, weights)
          for device in np.flatnonzero(allowed[group]).tolist()
      }
      best = min(choices.values(), key=lambda c: (c.lacks_room, c.cost))
      device = int(taken[group])
      result.append(choices[device].regret(best))
      self._put_back(group, device, choices[device].end_s)
    return result

  def _take_out(self, removed: list[int]) -> None:
    self._out = set(removed)
    self._at = dict(enumerate(self._devices))
    self._back_s: dict[int, float] = {}
    self._room = list(self._cluster.pool_bytes - self._step.peak_bytes)
    self._load_s = [0.] * self._cluster.num_devices
    for group, device in self._at.items():
      self._load_s[device] += self._work_s[group][device]
    self._busy_s = self._busy()
    for group in removed:
      device = self._devices[group]
      work = self._work_s[group][device]
      self._load_s[device] -= work
      self._room[self._cluster.memory_pools[device]] += self._bytes[group]
      self._spread(device, -work, self._first_s(group),
                   max(self._end_s[op] for op in self._ops[group]))

  def _put_back(self, group: int, device: int, end_s: float) -> None:
    work = self._work_s[group][device]
    self._out.remove(group)
    self._at[group], self._back_s[group] = device, end_s
    self._load_s[device] += work
    self._room[self._cluster.memory_pools[device]] -= self._bytes[group]
    self._spread(device, work, end_s - work, end_s)

  def _choice(self, group: int, device: int, weights: tuple[float, float,
                                                            float]) -> Choice:
    late_weight, sent_weight, busy_weight = weights
    work = self._work_s[group][device]
    around = [
        net for net in self._nets
        if len({self._group(op) for op in (net.producer, *net.consumers)}) > 1
    ]
    inputs = [net for net in around if self._brings(net, group)]
    ready = max([0., *(self._input_s(net, device) for net in inputs)])
    sent = sum(
        self._sends(net, self._at[self._group(net.producer)], device)
        for net in inputs)
    end = self._end(device, ready, work)
    late = 0.
    for net in around:
      if self._group(net.producer) != group:
        continue
      there = [op for op in net.consumers if self._is_there(op, group)]
      for target in {self._at[self._group(op)] for op in there}:
        sent += self._sends(net, device, target)
      for op in there:
        seconds = self._sends(net, device, self._at[self._group(op)])
        late = max(late, end + seconds - self._latest_s[op])
    room = self._room[self._cluster.memory_pools[device]]
    cost = (end + late_weight * late + sent_weight * sent + busy_weight *
            (self._load_s[device] + work))
    return Choice(room < self._bytes[group], cost, end)

  def _brings(self, net: Net, group: int) -> bool:
    """Whether a net is an input from another group that has a device."""
    return (group in {self._group(op) for op in net.consumers} and
            self._is_there(net.producer, group))

  def _is_there(self, op: int, group: int) -> bool:
    return self._group(op) != group and self._group(op) not in self._out

  def _input_s(self, net: Net, device: int) -> float:
    own = self._group(net.producer)
    if own in self._back_s:
      return self._back_s[own] + self._sends(net, self._at[own], device)
    return self._arrival_s(net, device)

  def _end(self, device: int, ready: float, work: float) -> float:
    """Returns the end of work in the free time of bins from a moment on."""
    unit = self._units[device]
    if not self._is_serial[unit]:
      return ready + work
    width, at = self._step_s / BINS, ready
    for number in range(self._bin(ready), BINS):
      left = max((number + 1) * width - at, 0.)
      free = (max(width - self._busy_s[unit][number], 0.)
              * min(left / width, 1.))
      if 0 < free >= work:
        return at + left * (work / free)
      work -= free
      at += left
    return at + work

  def _spread(self, device: int, work: float, first_s: float,
              last_s: float) -> None:
    first, last = self._bin(first_s), self._bin(last_s)
    last = max(first, last)
    busy = self._busy_s[self._units[device]]
    for number in range(first, last + 1):
      busy[number] = max(busy[number] + work / (last - first + 1), 0.)

  def _busy(self) -> dict[int, list[float]]:
    """Returns the seconds in which the ops of each unit run in each bin."""
    width = self._step_s / BINS
    result = {unit: [0.] * BINS for unit in self._units}
    for device in range(self._cluster.num_devices):
      busy = [0.] * BINS
      for op, (start, end) in enumerate(zip(self._start_s, self._end_s)):
        if self._devices[self._group(op)] != device:
          continue
        for number in range(self._bin(start), BINS):
          if start < end:
            until = min(end, (number + 1) * width)
            busy[number] += max(until - start, 0.)
            start = until
      unit = self._units[device]
      result[unit] = [a + b for a, b in zip(result[unit], busy)]
    return result

  def _bin(self, time_s: float) -> int:
    return int(min(max(time_s / self._step_s * BINS, 0), BINS - 1))

  def _group(self, op: int) -> int:
    return int(self._graph.groups[op])

  def _first_s(self, group: int) -> float:
    return min(self._start_s[op] for op in self._ops[group])

  def _delay_s(self, source: int, target: int) -> float:
    """Returns the seconds from a transfer's end until the receiver notices."""
    sender, receiver = (self._cluster.devices[d] for d in (source, target))
    return (sender if sender.asynchronous else receiver).hop_s

  def _sends(self, net: Net, source: int, target: int) -> float:
    """Returns the seconds of a transfer; 0 on one device."""
    if source == target:
      return 0.
    latency_s, bytes_per_s, _ = self._cluster.link_arrays
    return (latency_s[source, target] + self._delay_s(source, target)
            + net.size / bytes_per_s[source, target])

  def _received(self) -> dict[tuple[int, bool, int], float]:
    """Tensor or producer, whether control, target -> when it can be used."""
    step, times = self._step, {}
    ends = [
        end + self._delay_s(source, target) for end, source, target in zip(
            step.transfer_end_s, step.transfer_sources, step.transfer_targets)
    ]
    for transfer, end in zip(step.work_transfers, step.work_end_s):
      ends[transfer] = max(ends[transfer], end)
    for tensor, op, target, end in zip(step.transfer_tensors.tolist(),
                                       step.transfer_ops.tolist(),
                                       step.transfer_targets.tolist(), ends):
      times[(op if tensor < 0 else tensor), tensor < 0, target] = end
    return times

  def _arrival_s(self, net: Net, device: int) -> float:
    """Returns the arrival on a device, also if the net was not sent there."""
    home = self._devices[self._group(net.producer)]
    end = self._end_s[net.producer]
    if home == device:
      return end
    return self._arrivals.get((*net.key, device),
                              end + self._sends(net, home, device))

  def _latest_starts(self) -> list[float]:
    """[N], without a longer step, in the same order and distance."""
    rank = {op: i for i, op in enumerate(self._graph.topological_order)}
    latest = [0.] * self._graph.num_ops
    after = {unit: self._step_s for unit in self._units}
    for op in sorted(rank, key=lambda op: (self._start_s[op], rank[op]),
                     reverse=True):
      unit = self._units[self._devices[self._group(op)]]
      end = after[unit] if self._is_serial[unit] else self._step_s
      for net in self._nets:
        if net.producer != op:
          continue
        for other in net.consumers:
          there = self._arrival_s(net, self._devices[self._group(other)])
          end = min(end, latest[other] - (there - self._end_s[op]))
      latest[op] = end - (self._end_s[op] - self._start_s[op])
      after[unit] = latest[op]
    return latest


def _nets(graph: op_graph.OpGraph) -> list[Net]:
  """Returns the nets, in the order of their first edges."""
  result: dict[tuple[int, bool], Net] = {}
  for (producer, consumer), tensor in zip(graph.edges.tolist(),
                                          graph.edge_tensors.tolist()):
    control = tensor < 0
    size = 0. if control or not graph.executions[producer] else float(
        graph.tensor_bytes[tensor])
    key = (producer if control else tensor, control)
    result.setdefault(key, Net(key, producer, size,
                               [])).consumers.append(consumer)
  return list(result.values())


def _by_group(graph: op_graph.OpGraph, values: np.ndarray) -> list[list[float]]:
  """Returns [G, X], sums of [N, X] over the ops of each group."""
  result = np.zeros((graph.num_groups, values.shape[1]))
  np.add.at(result, graph.groups, values)
  return result.tolist()
