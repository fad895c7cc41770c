"""The error of a learned search that has sampled no valid placement."""

from __future__ import annotations

from gdp_grappler import errors
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib


def none_valid(
    problem: placer_lib.Problem, count: int,
    placement: placement_lib.Placement) -> errors.InfeasiblePlacementError:
  """Returns the error, with a reason why one placement is not valid.

  Args:
    problem: Problem of the search.
    count: Number of placements that the search has sampled.
    placement: One of them.
  """
  violations = problem.evaluator.evaluate(problem.graph, placement).violations
  reason = ''.join(
      f' The last one: {violation.message.rstrip(". ")}. Mend that, or give'
      for violation in violations[:1]) or ' Give'
  return errors.InfeasiblePlacementError(
      f'None of {count} sampled placements of "{problem.graph.name}" runs on '
      f'"{problem.cluster.name}" and fits into its memories.{reason} '
      'more time, more devices or a smaller model.')
