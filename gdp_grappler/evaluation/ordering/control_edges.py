"""Control edges that make TensorFlow keep an order.

TensorFlow starts ready ops first in, first out, and has no priorities. A
control edge between two ops of a device holds back the one that would start too
early. Each edge costs a little, so only edges that the simulation shows to be
needed are added (`edge_search`). A placement without priorities gets the best
of several orders (`orders`).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.ordering import edge_search
from gdp_grappler.evaluation.ordering import orders
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class OrderConfig:
  """When edges are added, and how many.

  Attributes:
    min_gain: Share of the step that edges must be predicted to save; with
      less, there are none.
    heavy_shares: Edges join the heaviest ops of a device. These ops have this
      share of the device's weight. The weight of an op is its seconds plus
      those of its transfers. The shares are tried in turn until one brings the
      wanted gain.
    kept_gain: Share of the gain of an order by priorities that is enough.
    edge_s: Seconds that an edge adds to the op that waits; the executor visits
      it once more.
    max_simulated_ops: Ops of all simulations together, which bounds the time:
      two millions take about 3 s.
    max_s: Seconds after which the search ends. Its result then depends on the
      speed of the machine.
    only_wanted: Whether a placement with priorities gets their order or none.
      Else it may get another order, of which edges keep more.
  """

  min_gain: float = 0.02
  heavy_shares: tuple[float, ...] = (0.9, 0.99, 1.)
  kept_gain: float = 0.95
  edge_s: float = 5e-7
  max_simulated_ops: int = 2_000_000
  max_s: float = math.inf
  only_wanted: bool = True

  def __post_init__(self) -> None:
    for field in ('min_gain', 'kept_gain', 'heavy_shares'):
      value = getattr(self, field)
      shares = value if isinstance(value, tuple) else (value,)
      if not all(0 <= share <= 1 for share in shares):
        raise ValueError(f'{field} is {value}; give shares from 0 to 1.')
    for field in ('edge_s', 'max_simulated_ops'):
      if not 0 <= getattr(self, field) < float('inf'):
        raise ValueError(f'{field} is {getattr(self, field)}; give 0 or more.')
    if not self.max_s >= 0:
      raise ValueError(f'max_s is {self.max_s}; give 0 or more.')


@dataclasses.dataclass(frozen=True, eq=False)
class Order:
  """Control edges and what they are predicted to bring.

  Attributes:
    control_edges: int32 [C, 2], (first, then). Most join ops of one device;
      others hold a device back until a copy to it can start. Empty where an
      order does not pay.
    fifo_s: Simulated step without them.
    ordered_s: Simulated step if TensorFlow obeyed priorities, the best of those
      that were tried.
    with_edges_s: Simulated step, first in, first out, with these edges: the
      slower of the step with `edge_s` and the step without. `fifo_s` if there
      are no edges.
    priorities: float64 [N], those that the edges enforce; None if there are no
      edges.
    config: How the edges were searched; None if there was no search.
    complete: Whether that search ended before it reached a limit of `config`.
  """

  control_edges: np.ndarray
  fifo_s: float
  ordered_s: float
  with_edges_s: float
  priorities: np.ndarray | None = None
  config: OrderConfig | None = None
  complete: bool = False

  def answers(self, config: OrderConfig) -> bool:
    """Whether a search with another config would find nothing better."""
    own = self.config
    if own is None:
      return False
    thorough = self.complete or (own.max_simulated_ops
                                 >= config.max_simulated_ops and
                                 own.max_s >= config.max_s)
    # With a smaller gain, a search that found no edges might find some.
    found = len(self.control_edges) > 0 or own.min_gain <= config.min_gain
    return thorough and found and own == dataclasses.replace(
        config, min_gain=own.min_gain, only_wanted=own.only_wanted,
        max_simulated_ops=own.max_simulated_ops, max_s=own.max_s)

  def limited(self, min_gain: float) -> Order:
    """The order, without its edges if they save a smaller share of a step."""
    if self.with_edges_s < self.fifo_s * (1 - min_gain):
      return self
    return dataclasses.replace(self, control_edges=edge_pricer.as_edges([]),
                               with_edges_s=self.fifo_s, priorities=None)


@dataclasses.dataclass(frozen=True, eq=False)
class OrderedPlacement(placement_lib.Placement):
  """A placement that keeps its control edges, which saves a second search.

  A copy with other devices or priorities has the same `order`, which then is
  not the order of the copy. So `known_order` compares the two.

  Attributes:
    order: Control edges of the placement `order_of`.
    order_of: The placement for which the edges were searched.
  """

  order: Order | None = None
  order_of: placement_lib.Placement | None = None

  @property
  def known_order(self) -> Order | None:
    """The order of this placement; None before a search."""
    known = self.order_of
    if known is None or not np.array_equal(known.devices, self.devices):
      return None
    ours, theirs = self.priorities, known.priorities
    if ours is None or theirs is None:
      return self.order if ours is theirs else None
    return self.order if np.array_equal(ours, theirs) else None


def keep(placement: placement_lib.Placement, order: Order) -> OrderedPlacement:
  """The placement with its order, and with the priorities that edges enforce.

  Without edges it has the priorities that it had.

  Args:
    placement: N ops.
    order: Result of `control_edges` for the placement.
  """
  priorities = (placement.priorities
                if order.priorities is None else order.priorities)
  plain = placement_lib.Placement(placement.devices, placement.cluster,
                                  priorities)
  return OrderedPlacement(plain.devices, plain.cluster, plain.priorities, order,
                          plain)


def control_edges(
    graph: op_graph.OpGraph, placement: placement_lib.Placement,
    simulator: simulator_lib.Simulator, config: OrderConfig = OrderConfig()
) -> Order:
  """As few control edges as make TensorFlow keep an order, where it pays.

  The function does not search if the placement keeps the result of a search
  (`keep`) that was as thorough, and if the step is the same as it was then.

  Args:
    graph: N ops; those that run in one step and no others.
    placement: Of these ops; priorities it has say which order is wanted,
      unless `config.only_wanted` is off.
    simulator: Of the placement's cluster.
    config: When and how many.

  Returns:
    No edges, and infinite steps, for a placement that breaks a rule; no edges
    where the memories would overflow with them, or by more than without.

  Raises:
    ValueError: another cluster, or not a device per op.
  """
  if placement.cluster is not simulator.cluster and (placement.cluster
                                                     != simulator.cluster):
    raise ValueError(
        f'The placement is on cluster "{placement.cluster.name}", the '
        f'simulator is for "{simulator.cluster.name}".')
  fifo = simulator.price(graph, placement.devices[None])
  fifo_s = float(fifo.seconds[0])
  known = (placement.known_order
           if isinstance(placement, OrderedPlacement) else None)
  if known is not None and known.fifo_s == fifo_s and known.answers(config):
    return known.limited(config.min_gain)
  wanted = _orders(graph, placement, simulator, config.only_wanted)
  devices = np.broadcast_to(placement.devices, wanted.shape)
  # Equal priorities are not the same as none: without priorities, asynchronous
  # devices run ahead.
  wanted_s = simulator.price(graph, devices, wanted).seconds
  nothing = Order(edge_pricer.as_edges([]), fifo_s, float(wanted_s.min()),
                  fifo_s, config=config, complete=True)
  # Many graphs end here, before anything that costs time.
  if not nothing.ordered_s < fifo_s * (1 - config.min_gain):
    return nothing
  try:
    found, order, complete = _found(graph, placement, simulator, config,
                                    wanted[np.argsort(wanted_s, kind='stable')])
  except errors.InvalidGraphError:
    return nothing  # Loops that feed each other in a circle: leave them alone.
  nothing = dataclasses.replace(nothing, complete=complete)
  # What edges cost is little, but may by luck be what makes them pay.
  free = edge_pricer.price(graph, found.edges, devices[:1], simulator)
  with_edges_s = max(found.step_s, float(free.seconds[0]))
  # Another order may hold more tensors at a time.
  if (free.overflow_bytes[0] > fifo.overflow_bytes[0] or
      not with_edges_s < fifo_s * (1 - config.min_gain)):
    return nothing
  return dataclasses.replace(nothing, control_edges=found.edges,
                             with_edges_s=with_edges_s, priorities=order)


def promised_s(graph: op_graph.OpGraph, placement: placement_lib.Placement,
               simulator: simulator_lib.Simulator) -> float:
  """Simulated step if edges kept all of an order, the best of those wanted.

  Fewer edges, or others as well, may bring a little more.

  Args:
    graph: N ops.
    placement: Of these ops, on the simulator's cluster.
    simulator: Prices.
  """
  wanted = _orders(graph, placement, simulator)
  devices = np.broadcast_to(placement.devices, wanted.shape)
  return float(simulator.price_in_order(graph, devices, wanted).seconds.min())


def chooser(
    simulator: simulator_lib.Simulator, config: OrderConfig = OrderConfig()
) -> Callable[[op_graph.OpGraph, placement_lib.Placement], np.ndarray]:
  """What a `Measurer` asks for the control edges of an order, int32 [C, 2]."""
  return lambda graph, placement: control_edges(graph, placement, simulator,
                                                config).control_edges


def evaluate(
    graph: op_graph.OpGraph, placement: placement_lib.Placement,
    evaluator: evaluator_lib.Evaluator, simulator: simulator_lib.Simulator,
    config: OrderConfig = OrderConfig()
) -> evaluator_lib.Evaluation:
  """A step with the control edges that are predicted to pay, if any are.

  Args:
    graph: N ops.
    placement: Of these ops.
    evaluator: Says what the step takes.
    simulator: Predicts, on the same cluster.
    config: When edges are added, and how many.

  Raises:
    ValueError: as of `control_edges`.
  """
  order = control_edges(graph, placement, simulator, config)
  if evaluator.simulated:
    return evaluator.evaluate(
        edge_pricer.with_edges(graph, order.control_edges),
        dataclasses.replace(placement, priorities=None))
  # A stopwatch makes edges of priorities itself.
  return evaluator.evaluate(
      graph, dataclasses.replace(placement, priorities=order.priorities))


def _orders(graph: op_graph.OpGraph, placement: placement_lib.Placement,
            simulator: simulator_lib.Simulator,
            only_wanted: bool = True) -> np.ndarray:
  """float64 [K, N], the priorities that may be wanted."""
  own = [] if placement.priorities is None else [placement.priorities]
  if own and only_wanted:
    return np.stack(own)
  usual = orders.of(graph, placement.devices, simulator.cluster,
                    simulator.op_seconds(graph))
  different = {order.tobytes(): order for order in (*own, *usual)}
  return np.stack([*different.values()])


def _found(graph: op_graph.OpGraph, placement: placement_lib.Placement,
           simulator: simulator_lib.Simulator, config: OrderConfig,
           wanted: np.ndarray) -> tuple[edge_search.EdgeSet, np.ndarray, bool]:
  """The best edges for any of the orders, float64 [K, N], and which it was.

  The orders come with the one of the fastest wanted step first. The last result
  is whether no limit of the config was reached.
  """
  pricer = edge_pricer.EdgePricer(graph, placement, simulator, config.edge_s,
                                  config.max_simulated_ops, config.max_s)
  nothing = edge_pricer.as_edges([])
  plain = edge_search.EdgeSet(nothing, pricer.schedule(nothing))
  tried: list[tuple[edge_search.EdgeSet, edge_search.EdgeSearch,
                    np.ndarray]] = []
  for order in wanted:
    obeyed = pricer.wanted(order)
    if tried and obeyed.step_time_s >= min(t[0].step_s for t in tried):
      break
    search = edge_search.EdgeSearch(pricer, plain, obeyed, config.kept_gain,
                                    config.heavy_shares)
    tried.append((search.best(), search, order))
  found, search, order = min(tried, key=lambda t: t[0].step_s)
  fewest = search.fewest(search.throttled(found), order)
  return fewest, order, pricer.left > 0
