"""The problem that every placer solves, and the interfaces of placers."""

from __future__ import annotations

import dataclasses
import functools
import time
from typing import Any, Callable, Protocol, runtime_checkable

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import cluster as cluster_lib
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.costs import busy
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph


@dataclasses.dataclass(frozen=True)
class Problem:
  """A graph to place on a cluster, with the prices of placements.

  Attributes:
    graph: The graph to place.
    cluster: The devices.
    evaluator: Prices placements on `cluster`. Placers minimise this price. It
      may differ from the step time that is reported (`robust_evaluator`).
    seed: Two runs with the same seed give the same placement.
    expert_devices: int [N], a human expert's device of each op; None if there
      is none. The devices may break the graph's rules.
    time_budget_s: Seconds that a search may take; None for the placer's
      default. A placer with many proposals starts none after that time. Placers
      with one proposal ignore the budget.
    simulator: Predicts the gain of control edges; None if nothing predicts it.
    may_add_edges: Whether control edges may be added to the graph. If they may
      and a simulator is given, searches also look for placements that are fast
      in the order of priorities, and propose them (see `Proposer`).
    clock: Returns seconds since a fixed moment; measures the time budget. If
      the clock stands still (`deadlines.still`), a number of priced placements
      takes the place of the budget.
    repeatable: Whether equal problems should get equal placements in spite of a
      time budget, even if a placer then does not use all of the time.
    given_allowed: bool [G, D], devices that each group may have; None for the
      rules of the graph and the cluster.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  evaluator: evaluator_lib.Evaluator
  seed: int = 0
  expert_devices: np.ndarray | None = None
  time_budget_s: float | None = None
  simulator: simulator_lib.Simulator | None = None
  may_add_edges: bool = True
  clock: Callable[[], float] = time.monotonic
  repeatable: bool = False
  given_allowed: np.ndarray | None = None

  @property
  def orders_pay(self) -> bool:
    """Whether a search for orders of ops pays.

    An order pays if control edges may be added, a simulator predicts their
    gain, prices are simulated, and two devices or more have a queue of ops. Ops
    of a CPU share the cores and have no queue. On CPUs control edges only cost
    time.
    """
    return (self.may_add_edges and self.simulator is not None and
            self.evaluator.simulated and
            sum(device.asynchronous for device in self.cluster.devices) > 1)

  @property
  def by_count(self) -> bool:
    """Whether the clock stands still. All machines then get equal results."""
    return self.clock is deadlines.still

  @property
  def ends_by_count(self) -> bool:
    """Whether the number of prices, and not the clock, should end a search."""
    return self.by_count or self.repeatable or self.time_budget_s is None

  @functools.cached_property
  def allowed(self) -> np.ndarray:
    """bool [G, D], devices that each group may have."""
    if self.given_allowed is not None:
      return self.given_allowed
    return constraints.allowed_devices(self.graph, self.cluster)

  @functools.cached_property
  def op_seconds(self) -> np.ndarray:
    """float64 [N, D], the evaluator's seconds of each op on each device."""
    return self.evaluator.op_seconds(self.graph)

  @functools.cached_property
  def busy_seconds(self) -> np.ndarray:
    """float64 [N, D], seconds for balancing work; host time counts (`busy`)."""
    return busy.seconds(self.graph, self.cluster,
                        self.evaluator.costs(self.graph), self.op_seconds)

  @functools.cached_property
  def group_seconds(self) -> np.ndarray:
    """float64 [G, D], sum of `op_seconds` over the ops of each group."""
    return self.graph.group_sums(self.op_seconds)

  def deadline(self) -> deadlines.Deadline:
    """The end of the time budget, if the budget starts now."""
    return deadlines.within(self.time_budget_s, self.clock)

  def until(self, deadline: deadlines.Deadline) -> Problem:
    """The problem with the time until a deadline as its budget.

    Args:
      deadline: The end of the budget.
    """
    return self._with(time_budget_s=deadline.left_s, clock=deadline.clock)

  def priced_by(self, evaluator: evaluator_lib.Evaluator) -> Problem:
    """The problem with the prices of another evaluator.

    Args:
      evaluator: Has the same seconds of ops.
    """
    return self._with(evaluator=evaluator)

  def _with(self, **changes: Any) -> Problem:
    """The problem with other fields; computed properties are kept."""
    result = dataclasses.replace(self, **changes)
    for name in ('allowed', 'op_seconds', 'busy_seconds', 'group_seconds'):
      if name in self.__dict__:
        result.__dict__[name] = self.__dict__[name]
    return result


class Placer(Protocol):
  """Finds a placement that keeps the graph's rules.

  The placement may overflow a memory. The evaluator detects an overflow.
  """

  def place(self, problem: Problem) -> placement_lib.Placement:
    """Places every op.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """


@runtime_checkable
class Chooser(Placer, Protocol):
  """A placer that returns the best placement of other placers."""

  @property
  def winner(self) -> str | None:
    """The placer whose placement `place` returned last; None before a call."""


@runtime_checkable
class Proposer(Placer, Protocol):
  """A placer that proposes several good placements.

  The best of them may depend on facts that the price does not contain, such as
  the order that control edges can enforce.
  """

  def proposals(self, problem: Problem) -> tuple[placement_lib.Placement, ...]:
    """Different placements; the first one is the result of `place`.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
