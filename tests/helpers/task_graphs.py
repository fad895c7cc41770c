"""Makes tasks for list schedulers from graphs."""

from __future__ import annotations

from typing import Any

from gdp_grappler.graph import op_graph
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.list_scheduling import proposals
from gdp_grappler.placers.list_scheduling import task_graph
from helpers import problems

# Of `clusters.make_cluster`: seconds of latency, and per byte.
LINK = 1., .01


def make(graph: op_graph.OpGraph, seconds: Any = 1.) -> task_graph.TaskGraph:
  """Returns one task per op, for a CPU and two GPUs."""
  problem = problems.make(graph, seconds=seconds)
  return task_graph.from_graph(graph, problem.busy_seconds, problem.allowed)


def proposals_of(problem: placer_lib.Problem) -> proposals.Proposals:
  """Returns the `Proposals` of a problem, which list schedulers share."""
  return proposals.Proposals(problem.graph, problem.cluster,
                             problem.busy_seconds, problem.allowed)
