"""Placers that a run is compared with."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Iterable, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler import progress
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.evaluation import evaluator as evaluator_lib
from gdp_grappler.evaluation import recording_evaluator
from gdp_grappler.evaluation.ordering import control_edges
from gdp_grappler.evaluation.simulation import simulator as simulator_lib
from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers import registry

NAMES = ('single_device', 'random', 'metis')
SEARCH = 'local_search'
# Share of the remaining time that a placer other than `SEARCH` may take.
_SHARE = .4


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
  """A placer's placement and its price.

  Attributes:
    placer: Name of the placer.
    placement: Devices of the ops.
    evaluation: Price with ready ops first in, first out.
    evaluations: Placements priced during the search, the result included.
    seconds: Time that the placer took.
    seed: Seed of the placer.
    ordered: Price with the control edges that are predicted to pay; None if the
      placement is not valid, or if no time was left to find them.
  """

  placer: str
  placement: placement_lib.Placement
  evaluation: evaluator_lib.Evaluation
  evaluations: int
  seconds: float
  seed: int
  ordered: evaluator_lib.Evaluation | None = None


def in_order(graph: op_graph.OpGraph, evaluator: evaluator_lib.Evaluator,
             simulator: simulator_lib.Simulator, result: Result,
             deadline: deadlines.Deadline = deadlines.NEVER) -> Result:
  """Returns the result with its price under control edges.

  Args:
    graph: The graph that was placed.
    evaluator: Evaluator of step times.
    simulator: Predicts which control edges pay.
    result: Result of a placer.
    deadline: Time until which control edges may be computed.
  """
  if not result.evaluation.valid:
    return result
  left_s = deadline.left_s
  config = control_edges.OrderConfig(
      max_s=math.inf if left_s is None else left_s)
  order = control_edges.control_edges(graph, result.placement, simulator,
                                      config)
  if deadline.passed and not order.complete and not len(order.control_edges):
    return result
  placement = control_edges.attach(result.placement, order)
  return dataclasses.replace(
      result, ordered=control_edges.evaluate(graph, placement, evaluator,
                                             simulator, config))


def best(results: Sequence[Result]) -> Result:
  """Returns the fastest valid result, the first of equals.

  If none is valid, all results are compared.

  Args:
    results: At least one.
  """
  return min(
      results, key=lambda result:
      (not result.evaluation.valid, result.evaluation.step_time_s))


def found_by(origin: str, best_row: np.ndarray | None, rows: np.ndarray,
             results: Sequence[Result]) -> str:
  """Returns the origin of a run's placement; of a baseline, its placer.

  A resumed run runs the placers again, and some may then find other placements.
  So 'baseline' is returned if none of them has the placement.

  Args:
    origin: Origin of the placement. 'baseline' stands for any placer.
    best_row: int [M], the placement; None if nothing fits.
    rows: int [B, M], the placements of the baselines.
    results: [B], the baselines.
  """
  if origin != 'baseline':
    return origin
  same = (rows == best_row).all(axis=1)
  return results[int(same.argmax())].placer if same.any() else origin


def reference_s(evaluations: Iterable[evaluator_lib.Evaluation],
                op_seconds: np.ndarray) -> float:
  """Returns the best run time of baselines, the unit of the reward.

  If no baseline is valid, it returns the time of all ops one after the other,
  each on its fastest device.

  Args:
    evaluations: Evaluations of the baselines.
    op_seconds: [N, D], seconds of each op on each device.
  """
  valid = [e.step_time_s for e in evaluations if e.valid]
  return min(valid) if valid else float(op_seconds.min(axis=1).sum())


def place(name: str, problem: placer_lib.Problem,
          evaluator: evaluator_lib.Evaluator,
          simulator: simulator_lib.Simulator,
          deadline: deadlines.Deadline = deadlines.NEVER) -> Result:
  """Runs one placer.

  Args:
    name: Name of the placer.
    problem: Problem that the placer solves.
    evaluator: Evaluator of the placement's step time.
    simulator: Predicts which control edges pay.
    deadline: Time until which control edges may be computed. The placer may
      use a share of the remaining time; `SEARCH` has the problem's time budget.

  Raises:
    InfeasiblePlacementError: the graph cannot be placed on the cluster.
  """
  progress.doing(f'pricing baselines of {problem.graph.name}: {name}')
  watched = recording_evaluator.Recorder(problem.evaluator)
  start = time.monotonic()
  budget_s = (problem.time_budget_s
              if name == SEARCH else deadline.after(_SHARE).left_s)
  placement = registry.create(name).place(
      dataclasses.replace(problem, evaluator=watched, time_budget_s=budget_s))
  seconds = time.monotonic() - start
  evaluation = evaluator.evaluate(problem.graph, placement)
  return in_order(
      problem.graph, evaluator, simulator,
      Result(name, placement, evaluation, watched.evaluations + 1, seconds,
             problem.seed), deadline)
