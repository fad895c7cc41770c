"""The robust price: the average step of a placement under random errors.

Two ops may be ready at almost the same moment, and the step may depend on the
op that starts first. The simulator always decides in the same way. A search
that compares thousands of placements finds placements for which all of these
decisions happen to be good. The real steps of such placements are longer on
average. So a search should minimize the average step.

The robust evaluator therefore simulates a placement again with random errors:
in the seconds of ops, in their dispatch, in the bytes of transfers, and in the
times of the event manager. All placements of a graph get the same errors. (On
emulated GPUs most of the variation comes from the order in which two threads
dispatch.) Errors are drawn in pairs with opposite signs (antithetic variates).
So the mean of a pair leaves the length of a chain of ops as it is, and a pair
says more than several independent draws.

The price is the simulated step times the *luck* of the placement:

* The ratio of a placement is the mean step of its draws, divided by its
  simulated step.
* The steps of placements with all ops on one device do not depend on chance
  decisions. The luck of a placement is its ratio, divided by the largest ratio
  of such placements. Luck is at least 1.

Two facts follow. No price is less than the simulated step. The price of a
placement on one device is its simulated step. So if a placement has a lower
price than one device, its simulated step is shorter, too. The step without
errors decides whether a placement fits into memory. If the caller gives a
ceiling (`Evaluator.price_groups`), all of this holds for prices up to it.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import weakref

import numpy as np

from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import one_device
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator
from gdp_grappler.evaluation.simulation import native_simulator
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph

# Half the width of a uniform distribution of standard deviation 1.
_HALF_WIDTH = math.sqrt(3)
# Placements that get draws together when the best of several is wanted. This is
# not the number of threads, because prices must not depend on the machine.
_AT_ONCE = 16


@dataclasses.dataclass(frozen=True)
class RobustConfig:
  """The size of the random errors.

  Attributes:
    pairs: Number of pairs of draws; a price takes 1 + 2 `pairs` simulations.
    close_pairs: Number of pairs of other draws, which only
      `Robust.price_closely` uses.
    op_jitter: Standard deviation of an op's seconds, as a share of the seconds.
      All four deviations are below 1 / sqrt(3), because the distribution is
      uniform, and seconds must be above 0.
    wire_jitter: Standard deviation of a tensor's bytes in a transfer, as a
      share.
    dispatch_jitter: Standard deviation of the seconds in which a thread
      dispatches an op or a copy to an asynchronous device, as a share.
    poll_jitter: Standard deviation of the delay with which the event manager
      finds the end of a copy at a later look, as a share. The delay varies
      because the event manager looks at fixed times.
    seed: Seed of the draws.
  """

  pairs: int = 1
  close_pairs: int = 4
  op_jitter: float = .1
  wire_jitter: float = .2
  dispatch_jitter: float = .2
  poll_jitter: float = .55
  seed: int = 0


_DEFAULT = RobustConfig()


class Robust(evaluator.Wrapper):
  """Prices placements by the robust price (see the module); deterministic.

  Searches and learners minimize this price. Messages and tables show the
  simulator's own step. Draws are prepared once per graph, and kept as long as
  the graph lives. An object may be used from several threads at once.

  Attributes:
    cluster: Cluster whose devices placements index.
    simulated: True.
  """

  def __init__(self, simulator: simulator_lib.Simulator,
               config: RobustConfig = _DEFAULT) -> None:
    """Initializes a Robust.

    Args:
      simulator: Simulator of the step without errors.
      config: Number and size of the random errors.
    """
    super().__init__(simulator)
    self._simulator, self._config = simulator, config
    # Usual draws, and draws of `price_closely`.
    self._draws: tuple[weakref.WeakKeyDictionary[op_graph.OpGraph, _Draws],
                       ...] = (weakref.WeakKeyDictionary(),
                               weakref.WeakKeyDictionary())
    self._lock = threading.Lock()

  def evaluate(self, graph: op_graph.OpGraph,
               placement: placement_lib.Placement) -> evaluator.Evaluation:
    """Prices one placement; see `evaluator.Evaluator`.

    Raises:
      ValueError: the placement is on another cluster.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    plain = self._simulator.evaluate(graph, placement)
    if math.isinf(plain.step_time_s):
      return plain
    prices = self.price(graph, placement.devices[None], placement.priorities)
    return dataclasses.replace(plain, step_time_s=float(prices.seconds[0]))

  def price(self, graph: op_graph.OpGraph, devices: np.ndarray,
            priorities: np.ndarray | None = None) -> evaluator.Prices:
    """Prices K placements, int [K, N]; see `evaluator.Evaluator`.

    Raises:
      ValueError: an array has another shape or type, or a priority is no
        number.
      InfeasiblePlacementError: the cluster cannot hold the graph at all.
    """
    plain = self._simulator.price(graph, devices, priorities)
    return self._with_luck(graph, plain, devices, priorities)

  def price_in_order(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      priorities: np.ndarray,
      ceiling_s: evaluator.Ceiling = math.inf) -> evaluator.Prices:
    """Prices K placements in order; see `evaluator.Evaluator`.

    Each draw computes the order of the ops from the priorities anew.
    """
    plain = self._simulator.price_in_order(graph, devices, priorities,
                                           ceiling_s)
    return self._with_luck(graph, plain, devices, priorities, ceiling_s,
                           self._simulator.orderable(graph))

  def price_closely(self, graph: op_graph.OpGraph, devices: np.ndarray,
                    priorities: np.ndarray | None = None) -> evaluator.Prices:
    """Prices K placements by draws of their own; see `evaluator.Evaluator`.

    A search finds placements whose usual draws are short by chance. So close
    prices have draws that no other price uses.
    """
    plain = self._simulator.price_closely(graph, devices, priorities)
    orderable = None if priorities is None else self._simulator.orderable(graph)
    return self._with_luck(graph, plain, devices, priorities, math.inf,
                           orderable, closely=True)

  def price_groups(
      self, graph: op_graph.OpGraph, devices: np.ndarray,
      ceiling_s: evaluator.Ceiling | None = math.inf) -> evaluator.Prices:
    """Prices int [K, G]; see `evaluator.Evaluator`.

    A placement whose simulated step is above its ceiling gets no draws.
    """
    ops = np.asarray(devices)[:, graph.groups]
    if ceiling_s is None:
      return self._price_best(graph, ops)
    plain = self._simulator.price(graph, ops, ceiling_s=ceiling_s)
    return self._with_luck(graph, plain, ops, None, ceiling_s)

  def _price_best(self, graph: op_graph.OpGraph,
                  devices: np.ndarray) -> evaluator.Prices:
    """Prices placements by increasing step until the best one is known."""
    plain = self._simulator.price(graph, devices)
    keys, seconds = plain.keys(), plain.seconds.copy()
    draws, best_s, ranking = self._of(graph), math.inf, plain.ranking()
    # Luck is at least 1, and draws do not change validity or overflow. So
    # only placements that are equal in these to the first can be the best.
    candidates = [k for k in ranking if keys[k][:3] == keys[ranking[0]][:3]]
    for first in range(0, len(candidates), _AT_ONCE):
      rows = np.array(candidates[first:first + _AT_ONCE])
      shortest_s = plain.seconds[rows[0]]
      if shortest_s > best_s or math.isinf(shortest_s):
        break
      seconds[rows] *= draws.luck(plain.seconds[rows], devices[rows], None)
      best_s = min(best_s, seconds[rows].min())
    return dataclasses.replace(plain, seconds=seconds)

  def _with_luck(self, graph: op_graph.OpGraph, plain: evaluator.Prices,
                 devices: np.ndarray, priorities: np.ndarray | None,
                 ceiling_s: evaluator.Ceiling = math.inf,
                 orderable: np.ndarray | None = None,
                 closely: bool = False) -> evaluator.Prices:
    """Multiplies each step, unless above the ceiling, by its luck."""
    draws = self._of(graph, closely)
    rows = np.flatnonzero(
        np.isfinite(plain.seconds) & (plain.seconds <= ceiling_s))
    if priorities is not None:
      priorities = np.broadcast_to(priorities, np.shape(devices))[rows]
    seconds = plain.seconds.copy()
    seconds[rows] *= draws.luck(plain.seconds[rows],
                                np.asarray(devices)[rows], priorities,
                                orderable)
    return dataclasses.replace(plain, seconds=seconds)

  def _of(self, graph: op_graph.OpGraph, closely: bool = False) -> _Draws:
    known = self._draws[closely]
    with self._lock:
      draws = known.get(graph)
      if draws is None:
        draws = known[graph] = _Draws(graph, self._simulator, self._config,
                                      closely)
      return draws


def objective(judge: evaluator.Evaluator) -> evaluator.Evaluator:
  """The evaluator whose prices a search should minimize.

  For a simulator the result is the robust price. Measured steps vary anyway,
  so an evaluator that runs steps is returned as it is.

  Args:
    judge: Evaluator that finally decides between placements.
  """
  return Robust(judge) if isinstance(judge, simulator_lib.Simulator) else judge


class _Draws:
  """Simulated steps of one graph with random errors.

  An object holds no reference to the graph.
  """

  def __init__(self, graph: op_graph.OpGraph,
               simulator: simulator_lib.Simulator, config: RobustConfig,
               closely: bool = False) -> None:
    layout, self._threads = simulator.layout(graph), simulator.threads
    self._steps: list[native_simulator.PreparedGraph] = []
    first = config.pairs if closely else 0
    for pair in range(first,
                      first + config.close_pairs if closely else config.pairs):
      rng = np.random.default_rng((config.seed, pair))
      ops = _deviations(graph.num_ops, config.op_jitter, rng)
      wires = _deviations(len(graph.tensor_bytes), config.wire_jitter, rng)
      dispatch = _deviations(graph.num_ops, config.dispatch_jitter, rng)
      polls = _deviations(graph.num_ops, config.poll_jitter, rng)
      self._steps += [
          native_simulator.PreparedGraph(
              dataclasses.replace(
                  layout, seconds=layout.seconds * (1 + sign * ops)[:, None],
                  tensor_bytes=np.rint(layout.tensor_bytes *
                                       (1 + sign * wires)),
                  dispatch_factors=1 + sign * dispatch,
                  poll_factors=1 + sign * polls)) for sign in (1, -1)
      ]
    singles = one_device.of_each_kind(
        simulator.cluster, constraints.allowed_devices(graph,
                                                       simulator.cluster),
        simulator.op_seconds(graph))[:, graph.groups]
    plain_s = simulator.price(graph, singles).seconds
    self._bias = float(self._ratios(plain_s, singles, None).max(initial=1.))

  def luck(self, plain_s: np.ndarray, devices: np.ndarray,
           priorities: np.ndarray | None,
           orderable: np.ndarray | None = None) -> np.ndarray:
    """float64 [K], at least 1, the luck of placements that can run.

    Args:
      plain_s: float64 [K], seconds of the steps without random errors.
      devices: int [K, N].
      priorities: float64 [K, N] or None.
      orderable: bool [N] or None, see `native_simulator.PreparedGraph.run`.
    """
    return np.maximum(
        self._ratios(plain_s, devices, priorities, orderable) / self._bias, 1)

  def _ratios(self, plain_s: np.ndarray, devices: np.ndarray,
              priorities: np.ndarray | None,
              orderable: np.ndarray | None = None) -> np.ndarray:
    """float64 [K], mean of the draws / plain step; 1 for a step of 0 s."""
    devices = np.ascontiguousarray(devices, np.int32)
    if priorities is not None:
      priorities = np.ascontiguousarray(priorities, np.float64)
    seconds = np.mean([
        step.run(devices, priorities, self._threads, orderable)[0]
        for step in self._steps
    ], axis=0)
    return np.divide(seconds, plain_s, out=np.ones_like(plain_s),
                     where=np.isfinite(plain_s) & (plain_s > 0))


def _deviations(count: int, jitter: float,
                rng: np.random.Generator) -> np.ndarray:
  """float64 [count], uniform around 0, so that deviations are bounded."""
  return rng.uniform(-1, 1, count) * (_HALF_WIDTH * jitter)
