"""Control edges that make TensorFlow keep an order.

TensorFlow starts ready ops first in, first out, and has no priorities. A
control edge between two ops of a device delays the op that would start too
early. Each edge costs a little time. So the module adds only edges that the
simulation shows to be needed (`edge_search`). A placement without priorities
gets the best of two or three orders: by the critical path, depth first, and, if
the graph has time steps, with the time steps of layers kept together.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import arguments
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import critical_path_order
from gdp_grappler.evaluation.ordering import depth_first
from gdp_grappler.evaluation.ordering import edge_pricer
from gdp_grappler.evaluation.ordering import edge_search
from gdp_grappler.evaluation.ordering import layer_step_order
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class OrderConfig:
  """Limits of the search of control edges.

  Attributes:
    min_gain: Least share of the step that edges must be predicted to save. If
      they save less, there are no edges.
    edge_s: Seconds that an edge adds to the op that waits, because the
      executor's bookkeeping of the op grows.
    max_simulated_ops: Largest number of ops in all simulations together. It
      bounds the time of the search without a clock.
    max_s: Time limit of the search, in seconds. If the search reaches it, the
      result depends on the speed of the machine.
    only_wanted: Whether a placement with priorities gets only edges for these
      priorities. If not, it may get edges for another order, if those edges
      gain more.
  """

  min_gain: float = 0.02
  edge_s: float = 5e-7
  max_simulated_ops: int = 2_000_000
  max_s: float = math.inf
  only_wanted: bool = True


@dataclasses.dataclass(frozen=True, eq=False)
class Order:
  """Control edges and the step that they are predicted to give.

  Attributes:
    control_edges: int32 [C, 2], (first op, next op). Most edges join ops of one
      device. Others delay a device until a copy to it can start. Empty if an
      order does not pay.
    fifo_s: Seconds of the simulated step without these edges.
    ordered_s: Seconds of the simulated step if TensorFlow obeyed priorities,
      for the best priorities that were tried.
    with_edges_s: Seconds of the simulated step, first in, first out, with these
      edges: the slower of the step with `edge_s` and the step without. `fifo_s`
      if there are no edges.
    priorities: float64 [N], priorities that the edges enforce; None if there
      are no edges.
    config: Limits of the search; None if there was no search.
    complete: Whether the search ended by itself, before it reached a limit of
      `config`.
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
    # With a smaller `min_gain`, a search that found no edges might find some.
    found = len(self.control_edges) > 0 or own.min_gain <= config.min_gain
    return thorough and found and own.edge_s == config.edge_s

  def limited(self, min_gain: float) -> Order:
    """The order, without edges if they save less than `min_gain` of a step."""
    if self.with_edges_s < self.fifo_s * (1 - min_gain):
      return self
    return dataclasses.replace(self, control_edges=edge_pricer.as_edges([]),
                               with_edges_s=self.fifo_s, priorities=None)


@dataclasses.dataclass(frozen=True, eq=False)
class OrderedPlacement(placement_lib.Placement):
  """A placement that keeps its control edges, to save a second search.

  `dataclasses.replace` with other devices or priorities copies `order`, which
  does not belong to the new placement. So `known_order` compares the placement
  with `order_of`.

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


def attach(placement: placement_lib.Placement,
           order: Order) -> OrderedPlacement:
  """The placement with its order, and with the priorities that edges enforce.

  If there are no edges, the priorities stay the same.

  Args:
    placement: Placement of N ops.
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
  """Searches few control edges that make TensorFlow keep a profitable order.

  There is no search if the placement has the result of a search that was as
  thorough (`attach`), and if its step without edges is still as long.

  Args:
    graph: N ops, exactly those that run in one step.
    placement: Placement of these ops. Its priorities, if any, are the wanted
      order, unless `config.only_wanted` is False.
    simulator: Simulator of the placement's cluster.
    config: Limits of the search.

  Returns:
    The order. It has no edges if edges would not pay or would increase the
    overflow of memory, and infinite steps if the placement breaks a rule.

  Raises:
    ValueError: the placement is on another cluster, or does not have one device
      per op.
  """
  arguments.check_cluster(placement, simulator.cluster, 'simulator')
  fifo = simulator.price(graph, placement.devices[None])
  fifo_s = float(fifo.seconds[0])
  known = (placement.known_order
           if isinstance(placement, OrderedPlacement) else None)
  if known is not None and known.fifo_s == fifo_s and known.answers(config):
    return known.limited(config.min_gain)
  wanted = _orders(graph, placement, simulator, config.only_wanted)
  devices = np.broadcast_to(placement.devices, wanted.shape)
  # A step with equal priorities differs from a step without priorities, because
  # only without priorities the host dispatches ops ahead.
  wanted_s = simulator.price(graph, devices, wanted).seconds
  nothing = Order(edge_pricer.as_edges([]), fifo_s, float(wanted_s.min()),
                  fifo_s, config=config, complete=True)
  # Most of the time is spent in the search below. Many graphs gain nothing.
  if not nothing.ordered_s < fifo_s * (1 - config.min_gain):
    return nothing
  try:
    found, order, complete = _found(graph, placement, simulator, config,
                                    wanted[np.argsort(wanted_s, kind='stable')])
  except errors.InvalidGraphError:
    return nothing  # While loops depend on each other in a cycle.
  nothing = dataclasses.replace(nothing, complete=complete)
  # Costs of edges may shorten a step by chance. The slower of two steps counts.
  free = edge_pricer.price(graph, found.edges, devices[:1], simulator)
  with_edges_s = max(found.step_s, float(free.seconds[0]))
  # Another order may keep more tensors in memory at a time.
  if (free.overflow_bytes[0] > fifo.overflow_bytes[0] or
      not with_edges_s < fifo_s * (1 - config.min_gain)):
    return nothing
  return dataclasses.replace(nothing, control_edges=found.edges,
                             with_edges_s=with_edges_s, priorities=order)


def promised_s(graph: op_graph.OpGraph, placement: placement_lib.Placement,
               simulator: simulator_lib.Simulator) -> float:
  """Seconds of the simulated step if edges kept the best order completely.

  A search may find edges that give a slightly shorter step.

  Args:
    graph: N ops.
    placement: Placement of these ops, on the simulator's cluster. Its
      priorities, if any, are the only order that is tried.
    simulator: Simulator that prices the orders.
  """
  wanted = _orders(graph, placement, simulator)
  devices = np.broadcast_to(placement.devices, wanted.shape)
  return float(simulator.price_in_order(graph, devices, wanted).seconds.min())


def chooser(
    simulator: simulator_lib.Simulator
) -> Callable[[op_graph.OpGraph, placement_lib.Placement], np.ndarray]:
  """The function that gives a `Measurer` its control edges, int32 [C, 2]."""
  return lambda graph, placement: control_edges(graph, placement, simulator
                                               ).control_edges


def evaluate(
    graph: op_graph.OpGraph, placement: placement_lib.Placement,
    evaluator: evaluator_lib.Evaluator, simulator: simulator_lib.Simulator,
    config: OrderConfig = OrderConfig()
) -> evaluator_lib.Evaluation:
  """Evaluates a placement with the control edges that are predicted to pay.

  Args:
    graph: N ops.
    placement: Placement of these ops.
    evaluator: Evaluator of the step with edges.
    simulator: Simulator that predicts which edges pay, on the same cluster.
    config: Limits of the search of edges.

  Raises:
    ValueError: see `control_edges`.
  """
  order = control_edges(graph, placement, simulator, config)
  if evaluator.simulated:
    return evaluator.evaluate(
        edge_pricer.with_edges(graph, order.control_edges),
        dataclasses.replace(placement, priorities=None))
  # An evaluator that runs steps asks `chooser`, which finds the same edges.
  return evaluator.evaluate(
      graph, attach(dataclasses.replace(placement, priorities=None), order))


def _orders(graph: op_graph.OpGraph, placement: placement_lib.Placement,
            simulator: simulator_lib.Simulator,
            only_wanted: bool = True) -> np.ndarray:
  """float64 [K, N], priorities of the orders to try."""
  own = [] if placement.priorities is None else [placement.priorities]
  if own and only_wanted:
    return np.stack(own)
  # Several orders are tried, because no single one is always the best.
  ranks = critical_path_order.upward_ranks(graph, placement.devices,
                                           simulator.cluster,
                                           simulator.op_seconds(graph))
  by_steps = layer_step_order.priorities(graph, ranks)
  usual = ranks, depth_first.priorities(graph), by_steps
  different = {
      order.tobytes(): order for order in (*own, *usual) if order is not None
  }
  return np.stack([*different.values()])


def _found(graph: op_graph.OpGraph, placement: placement_lib.Placement,
           simulator: simulator_lib.Simulator, config: OrderConfig,
           wanted: np.ndarray) -> tuple[edge_search.EdgeSet, np.ndarray, bool]:
  """The best edges, the priorities that they enforce, and completeness.

  Args:
    graph: N ops.
    placement: Legal placement of these ops.
    simulator: Simulator of the placement's cluster.
    config: Limits of the search.
    wanted: float64 [K, N], priorities by increasing step.

  Returns:
    Edges, priorities float64 [N], and whether the search ended before it
    reached a limit.
  """
  pricer = edge_pricer.EdgePricer(graph, placement, simulator, config.edge_s,
                                  config.max_simulated_ops, config.max_s)
  nothing = edge_pricer.as_edges([])
  plain = edge_search.EdgeSet(nothing, pricer.schedule(nothing))
  tried: list[tuple[edge_search.EdgeSet, edge_search.EdgeSearch,
                    np.ndarray]] = []
  for order in wanted:
    obeyed = pricer.obeying(order)
    if tried and obeyed.step_time_s >= min(t[0].step_s for t in tried):
      break
    search = edge_search.EdgeSearch(pricer, plain, obeyed)
    tried.append((search.best(), search, order))
  found, search, order = min(tried, key=lambda t: t[0].step_s)
  fewest = search.fewest(search.throttled(found), order)
  return fewest, order, pricer.left > 0
