"""What a run is compared with: placers that do not learn."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Iterable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import counting_evaluator
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry

NAMES = ('single_device', 'random', 'metis')
SEARCH = 'local_search'
# Of the time that is left, for one of these.
_SHARE = .4


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
  """A placer's placement and its price.

  Attributes:
    placer: Its name.
    placement: Devices of the ops.
    evaluation: Price, first in, first out.
    ordered: Price with the control edges that are predicted to pay; None if
      the placement is not valid.
    evaluations: Placements priced on the way, the result included.
    seconds: Time the placer took.
  """

  placer: str
  placement: placement_lib.Placement
  evaluation: evaluator_lib.Evaluation
  evaluations: int
  seconds: float
  ordered: evaluator_lib.Evaluation | None = None


def in_order(graph: op_graph.OpGraph, evaluator: evaluator_lib.Evaluator,
             simulator: simulator_lib.Simulator, result: Result,
             deadline: deadlines.Deadline = deadlines.NEVER) -> Result:
  """The result with the price of the other order.

  Args:
    graph: That was placed.
    evaluator: Says what a step takes.
    simulator: Predicts which control edges pay.
    result: Of a placer.
    deadline: Until when edges may be looked for.
  """
  if not result.evaluation.valid:
    return result
  left_s = deadline.left_s
  config = control_edges.OrderConfig(
      max_s=math.inf if left_s is None else left_s)
  return dataclasses.replace(
      result, ordered=control_edges.evaluate(graph, result.placement, evaluator,
                                             simulator, config))


def place_all(
    problem: placer_lib.Problem, evaluator: evaluator_lib.Evaluator,
    simulator: simulator_lib.Simulator,
    deadline: deadlines.Deadline = deadlines.NEVER) -> tuple[Result, ...]:
  """Runs each of `NAMES`.

  Args:
    problem: What they solve.
    evaluator: Says what a step of their placements takes.
    simulator: Predicts which control edges pay.
    deadline: Until when edges may be looked for; of what is left a placer that
      tries many cuts takes a part only.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  return tuple(
      place(name, problem, evaluator, simulator, deadline) for name in NAMES)


def best(results: Sequence[Result]) -> Result:
  """The fastest of those that are valid, or of all; the first of equals.

  Args:
    results: At least one.
  """
  return min(
      results, key=lambda result:
      (not result.evaluation.valid, result.evaluation.step_time_s))


def reference_s(evaluations: Iterable[evaluator_lib.Evaluation],
                op_seconds: np.ndarray) -> float:
  """Best run time of baselines, the unit of the reward.

  Where none fits into memory, the time of all ops one after the other, each
  on its fastest device, stands in.

  Args:
    evaluations: Of the baselines.
    op_seconds: [N, D].
  """
  valid = [e.step_time_s for e in evaluations if e.valid]
  return min(valid) if valid else float(op_seconds.min(axis=1).sum())


def place(name: str, problem: placer_lib.Problem,
          evaluator: evaluator_lib.Evaluator,
          simulator: simulator_lib.Simulator,
          deadline: deadlines.Deadline = deadlines.NEVER) -> Result:
  """Runs one placer.

  Args:
    name: Of the placer.
    problem: As of `place_all`.
    evaluator: As of `place_all`.
    simulator: As of `place_all`.
    deadline: As of `place_all`.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  progress.doing(f'pricing baselines of {problem.graph.name}: {name}')
  watched = counting_evaluator.Recorder(problem.evaluator)
  start = time.monotonic()
  budget_s = (problem.time_budget_s
              if name == SEARCH else deadline.after(_SHARE).left_s)
  placement = registry.create(name).place(
      dataclasses.replace(problem, evaluator=watched, time_budget_s=budget_s))
  seconds = time.monotonic() - start
  evaluation = evaluator.evaluate(problem.graph, placement)
  return in_order(
      problem.graph, evaluator, simulator,
      Result(name, placement, evaluation, watched.evaluations + 1, seconds),
      deadline)
