"""The question every placer answers."""

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
  """A graph, a cluster, a price and a seed.

  Attributes:
    graph: What to place.
    cluster: Where.
    evaluator: Prices placements on `cluster`: what is to be minimised, which
      need not be what a step is said to take in the end (`robust_evaluator`).
    seed: Two runs with the same seed give the same placement.
    expert_devices: int [N], where a human expert puts the ops; None if nobody
      said. It need not keep the graph's rules.
    time_budget_s: What a search may take, or who proposes many placements and
      then begins no further one; None for their own default. Others ignore it.
    simulator: Predicts what control edges bring, where they may be added; None
      where they may not. With it, searches look for what is fast in a good
      order as well, and propose it with priorities (see `Proposer`).
    clock: Seconds since any moment, by which the time budget goes. If it stands
      (`deadlines.still`), the budget says how many placements are priced.
    repeatable: Whether to say the same again on a quick machine, although there
      is a time budget, rather than to use all of it.
    given_allowed: bool [G, D], where groups may be; None for what graph and
      cluster say.
  """

  graph: op_graph.OpGraph
  cluster: cluster_lib.Cluster
  evaluator: evaluator_lib.Evaluator
  seed: int = 0
  expert_devices: np.ndarray | None = None
  time_budget_s: float | None = None
  simulator: simulator_lib.Simulator | None = None
  clock: Callable[[], float] = time.monotonic
  repeatable: bool = False
  given_allowed: np.ndarray | None = None

  @property
  def may_add_edges(self) -> bool:
    """Whether control edges may be added to the graph."""
    return self.simulator is not None

  @property
  def by_count(self) -> bool:
    """Whether no clock counts, so that every machine says the same."""
    return self.clock is deadlines.still

  @functools.cached_property
  def allowed(self) -> np.ndarray:
    """bool [G, D], where groups may be."""
    if self.given_allowed is not None:
      return self.given_allowed
    return constraints.allowed_devices(self.graph, self.cluster)

  @functools.cached_property
  def op_seconds(self) -> np.ndarray:
    """float64 [N, D], what the evaluator thinks that each op takes."""
    return self.evaluator.op_seconds(self.graph)

  @functools.cached_property
  def busy_seconds(self) -> np.ndarray:
    """float64 [N, D], by which to share work out: the host counts (`busy`)."""
    return busy.seconds(self.graph, self.cluster,
                        self.evaluator.costs(self.graph), self.op_seconds)

  @functools.cached_property
  def group_seconds(self) -> np.ndarray:
    """float64 [G, D], `op_seconds` of all ops of each group."""
    return self.graph.group_sums(self.op_seconds)

  def deadline(self) -> deadlines.Deadline:
    """When the time budget will be over, if it begins now."""
    return deadlines.within(self.time_budget_s, self.clock)

  def until(self, deadline: deadlines.Deadline) -> Problem:
    """The same with the time until then; what is known of it stays known."""
    return self._with(time_budget_s=deadline.left_s, clock=deadline.clock)

  def priced_by(self, evaluator: evaluator_lib.Evaluator) -> Problem:
    """The same with other prices and the same seconds of ops."""
    return self._with(evaluator=evaluator)

  def _with(self, **changes: Any) -> Problem:
    """The same with other fields; what is known of it stays known."""
    result = dataclasses.replace(self, **changes)
    for name in ('allowed', 'op_seconds', 'busy_seconds', 'group_seconds'):
      if name in self.__dict__:
        result.__dict__[name] = self.__dict__[name]
    return result


class Placer(Protocol):
  """Finds a placement without violations of the graph's rules.

  It may exceed a memory; the evaluator tells.
  """

  def place(self, problem: Problem) -> placement_lib.Placement:
    """Places every op.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """


@runtime_checkable
class Chooser(Placer, Protocol):
  """A placer that takes the placement of another one."""

  @property
  def winner(self) -> str | None:
    """Whose placement `place` last returned; None before it ran."""


@runtime_checkable
class Proposer(Placer, Protocol):
  """A placer that knows several good placements.

  Which of them is the best may hang on what no price tells, such as the order
  that can be enforced.
  """

  def proposals(self, problem: Problem) -> tuple[placement_lib.Placement, ...]:
    """Different placements, the first of which is what `place` returns.

    Raises:
      InfeasiblePlacementError: the graph cannot be placed on the cluster.
    """
