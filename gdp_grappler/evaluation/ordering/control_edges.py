"""Control edges that make TensorFlow keep an order.

TensorFlow starts ready ops first in, first out, and takes no priorities. A
control edge from one op of a device to another that would start too early has
the same effect. Each costs a little, so only those are chosen that the
simulation shows to be needed:

1. Simulate the step as TensorFlow runs it, and with the wanted priorities.
2. Where a device starts two consecutive heavy ops in the wrong order, add an
   edge. Simulate first in, first out with the edges: later ops may now be in
   the wrong order. Repeat until the wanted gain is there or the order is.
3. Leave edges out again, in halves, quarters, ..., as long as the gain stays.

Edges point forward in the time of one simulated step, as all others do, so
that no cycle can arise. Ops with an edge between them by way of others are
never in the wrong order, so that no edge says what others say already.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation.costs import cost_model
from gdp_grappler.evaluation.ordering import orderable
from gdp_grappler.evaluation.ordering import ordering
from gdp_grappler.evaluation.simulation import schedule as schedule_lib
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class OrderConfig:
  """When edges are added, and how many.

  Attributes:
    min_gain: Share of the step that edges must be predicted to save; with
      less, there are none.
    heavy_shares: Edges join the heaviest ops of a device, those that together
      make this share of its weight: seconds of ops and of what they send. The
      shares are tried in turn until one brings the wanted gain.
    kept_gain: Share of the gain of an order by priorities that is enough. More
      edges would bring the rest.
    edge_s: Seconds that an edge adds to the op that waits; the executor visits
      it once more.
    max_simulated_ops: Ops of all simulations together, which bounds the time:
      two millions take about 3 s.
  """

  min_gain: float = 0.02
  heavy_shares: tuple[float, ...] = (0.9, 0.99, 1.)
  kept_gain: float = 0.9
  edge_s: float = 5e-7
  max_simulated_ops: int = 2_000_000

  def __post_init__(self) -> None:
    for field in ('min_gain', 'kept_gain', 'heavy_shares'):
      value = getattr(self, field)
      shares = value if isinstance(value, tuple) else (value,)
      if not all(0 <= share <= 1 for share in shares):
        raise ValueError(f'{field} is {value}; give shares from 0 to 1.')
    for field in ('edge_s', 'max_simulated_ops'):
      if not 0 <= getattr(self, field) < float('inf'):
        raise ValueError(f'{field} is {getattr(self, field)}; give 0 or more.')


@dataclasses.dataclass(frozen=True, eq=False)
class Order:
  """Control edges and what they are predicted to bring.

  Attributes:
    control_edges: int32 [C, 2], ops that wait for an op of their own device:
      (first, then). Empty where an order does not pay.
    fifo_s: Simulated step without them.
    ordered_s: Simulated step if TensorFlow obeyed priorities.
    with_edges_s: Simulated step, first in, first out, with these edges;
      `fifo_s` if there are none.
  """

  control_edges: np.ndarray
  fifo_s: float
  ordered_s: float
  with_edges_s: float


def control_edges(
    graph: op_graph.OpGraph, placement: placement_lib.Placement,
    simulator: simulator_lib.Simulator, config: OrderConfig = OrderConfig()
) -> Order:
  """As few control edges as make TensorFlow keep an order, where it pays.

  Args:
    graph: N ops; those that run in one step and no others.
    placement: With the wanted priorities; without, the critical path goes
      first.
    simulator: Of the placement's cluster.
    config: When and how many.

  Returns:
    No edges, and infinite steps, for a placement that breaks a rule.

  Raises:
    ValueError: another cluster, or not a device per op.
  """
  if placement.cluster is not simulator.cluster and (placement.cluster
                                                     != simulator.cluster):
    raise ValueError(
        f'The placement is on cluster "{placement.cluster.name}", the '
        f'simulator is for "{simulator.cluster.name}".')
  if placement.priorities is None:
    placement = ordering.with_critical_path_order(graph, placement, simulator)
  assert placement.priorities is not None  # Else it has just got them.
  # Equal priorities are not the same: asynchronous devices run ahead without.
  fifo_s, ordered_s = (float(
      simulator.price(graph, placement.devices[None], order).seconds[0])
                       for order in (None, placement.priorities))
  nothing = Order(_as_edges([]), fifo_s, ordered_s, fifo_s)
  # Many graphs end here, before anything that costs time.
  if not ordered_s < fifo_s * (1 - config.min_gain):
    return nothing
  try:
    search = _Search(graph, placement, simulator, config)
  except errors.InvalidGraphError:
    return nothing  # Loops that feed each other in a circle: leave them alone.
  edges, with_edges_s = search.fewest(*search.enough())
  if not with_edges_s < fifo_s * (1 - config.min_gain):
    return nothing
  return Order(edges, fifo_s, ordered_s, with_edges_s)


def chooser(
    simulator: simulator_lib.Simulator, config: OrderConfig = OrderConfig()
) -> Callable[[op_graph.OpGraph, placement_lib.Placement], np.ndarray]:
  """What a `Measurer` asks for the control edges of an order, int32 [C, 2]."""
  return lambda graph, placement: control_edges(graph, placement, simulator,
                                                config).control_edges


def with_edges(graph: op_graph.OpGraph, edges: np.ndarray) -> op_graph.OpGraph:
  """The graph with more control edges, int [C, 2]."""
  return graph.replace(
      edges=np.concatenate([graph.edges, _as_edges(edges)]),
      edge_tensors=np.concatenate(
          [graph.edge_tensors,
           np.full(len(edges), -1, np.int32)]))


class _Search:
  """Finds edges for one placement."""

  def __init__(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement,
               simulator: simulator_lib.Simulator, config: OrderConfig) -> None:
    assert placement.priorities is not None  # As `control_edges` hands it on.
    # Without the loops closed, an op could come before what it depends on.
    self._graph = with_edges(graph, orderable.loop_barriers(graph))
    self._fifo = dataclasses.replace(placement, priorities=None)
    self._priorities = placement.priorities
    self._config = config
    self._simulator = simulator_lib.Simulator(
        simulator.cluster, _Known(self._graph, simulator, config.edge_s),
        threads=1)
    self._left = config.max_simulated_ops // max(1, graph.num_ops)
    self._plain = self._schedule(_as_edges([]))
    self._wanted = self._simulator.schedule(self._graph, placement)
    self._may = orderable.orderable(graph) & (self._wanted.end_s
                                              > self._wanted.start_s)

  @property
  def _target_s(self) -> float:
    """The step that is good enough."""
    saved_s = self._plain.step_time_s - self._wanted.step_time_s
    return self._plain.step_time_s - self._config.kept_gain * saved_s

  def enough(self) -> tuple[np.ndarray, float]:
    """The best edges found, and the step with them."""
    best = _as_edges([]), self._plain.step_time_s
    for share in self._config.heavy_shares:
      if best[1] > self._target_s:
        best = min(best, self._joining(share), key=lambda found: found[1])
    return best

  def _joining(self, share: float) -> tuple[np.ndarray, float]:
    """The edges of the best round that joins the heaviest ops."""
    edges, now = _as_edges([]), self._plain
    best = edges, now.step_time_s
    pairs = _pairs(self._heavy(share), self._fifo, self._wanted)
    while self._left > 0 and best[1] > self._target_s:
      first, then = pairs.T
      wrong = pairs[now.start_s[then] < now.start_s[first]]
      if not wrong.size:
        break
      edges = np.concatenate([edges, wrong])
      now = self._schedule(edges)
      if now.step_time_s < best[1]:
        best = edges, now.step_time_s
    return best

  def _heavy(self, share: float) -> np.ndarray:
    """Ops that are worth an edge and may have one."""
    weight_s = self._wanted.end_s - self._wanted.start_s
    np.add.at(weight_s, self._wanted.transfer_ops,
              self._wanted.transfer_end_s - self._wanted.transfer_start_s)
    heavy = []
    for device in range(self._fifo.cluster.num_devices):
      ops = np.flatnonzero(self._may & (self._fifo.devices == device))
      longest = ops[np.argsort(-weight_s[ops], kind='stable')]
      before_s = np.cumsum(weight_s[longest]) - weight_s[longest]
      heavy.append(longest[before_s < share * weight_s[ops].sum()])
    return np.sort(np.concatenate(heavy))

  def fewest(self, edges: np.ndarray,
             step_s: float) -> tuple[np.ndarray, float]:
    """Leaves out what does not matter; no slower than the target or before."""
    limit_s = max(step_s, self._target_s)
    # Ops of nearly equal priority may as well swap: try without them first.
    differ = self._priorities[edges[:, 0]] - self._priorities[edges[:, 1]]
    edges = edges[np.argsort(differ, kind='stable')]
    size = len(edges) // 2
    while size:
      start = 0
      while start < len(edges) and self._left > 0:
        fewer = np.delete(edges, slice(start, start + size), axis=0)
        fewer_s = self._schedule(fewer).step_time_s
        if fewer_s <= limit_s:
          edges, step_s = fewer, fewer_s
        else:
          start += size
      size //= 2
    return edges, step_s

  def _schedule(self, edges: np.ndarray) -> schedule_lib.Schedule:
    self._left -= 1
    graph = with_edges(self._graph, edges) if len(edges) else self._graph
    return self._simulator.schedule(graph, self._fifo)


class _Known(cost_model.CostModel):
  """A cost model that remembers, and charges for the edges that are new."""

  def __init__(self, graph: op_graph.OpGraph,
               simulator: simulator_lib.Simulator, edge_s: float) -> None:
    model, cluster = simulator.cost_model, simulator.cluster
    self._num_edges, self._edge_s = len(graph.edges), edge_s
    self._seconds = model.op_seconds(graph, cluster)
    self._workspace = model.workspace_bytes(graph, cluster)
    self._contention = model.contention(cluster)

  def op_seconds(self, graph: op_graph.OpGraph,
                 cluster: cluster_lib.Cluster) -> np.ndarray:
    del cluster
    new = np.bincount(graph.edges[self._num_edges:, 1], minlength=graph.num_ops)
    return self._seconds + self._edge_s * new[:, None]

  def workspace_bytes(self, graph: op_graph.OpGraph,
                      cluster: cluster_lib.Cluster) -> np.ndarray:
    del graph, cluster
    return self._workspace

  def contention(self, cluster: cluster_lib.Cluster) -> cost_model.Contention:
    del cluster
    return self._contention


def _pairs(heavy: np.ndarray, placement: placement_lib.Placement,
           schedule: schedule_lib.Schedule) -> np.ndarray:
  """int32 [P, 2], each heavy op after the last one of its device to end."""
  pairs = []
  for device in range(placement.cluster.num_devices):
    ops = heavy[placement.devices[heavy] == device]
    by_end = ops[np.argsort(schedule.end_s[ops], kind='stable')]
    last = np.searchsorted(schedule.end_s[by_end], schedule.start_s[ops],
                           'right') - 1
    pairs.append(np.stack([by_end[last], ops], axis=1)[last >= 0])
  return _as_edges(np.concatenate(pairs))


def _as_edges(edges: np.ndarray | Sequence[tuple[int, int]]) -> np.ndarray:
  return np.array(edges, np.int32).reshape(-1, 2)
