"""Mappings of graphs onto targets, by Scotch and Mt-KaHyPar.

Both libraries get the same jobs, run in a process of their own, and refuse some
jobs. Their placers propose in the same two rounds.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import arrangement
from gdp_grappler.placers.partitioning import partitioning

# Arguments of a library for one mapping, by name.
Arguments = Mapping[str, Any]
# Runs jobs, and returns the parts of each; None for a job that the library
# refuses.
Run = Callable[[list[dict[str, Any]]], list[np.ndarray | None]]
# Maps graphs onto targets, with the library's arguments for each.
Map = Callable[[Sequence[tuple[partitioning.Target, Arguments]], np.ndarray],
               list[partitioning.Proposal]]


def map_targets(jobs: Sequence[tuple[partitioning.Target, Arguments]],
                allowed: np.ndarray, run: Run) -> list[partitioning.Proposal]:
  """Maps graphs onto targets; skips jobs that the library refuses.

  Targets of one device come last. If the time is over, only the first proposal
  is priced. `partitioning.best` prices single devices in any case.

  Args:
    jobs: Target and arguments of each mapping. One device needs no mapping.
    allowed: bool [V, D], devices that each vertex may have.
    run: Runs the library.
  """
  jobs = sorted(jobs, key=lambda job: len(job[0].devices) == 1)
  several = [job for job in jobs if len(job[0].devices) > 1]
  mapped = iter(
      run([
          dict(graph=target.graph, shares=target.shares, fixed=target.
               fixed, **arguments) for target, arguments in several
      ]) if several else ())
  result = []
  for target, _ in jobs:
    parts = (next(mapped) if len(target.devices) > 1 else np.zeros(
        target.graph.num_vertices, int))
    if parts is not None:
      parts = arrangement.arrange(parts, target, allowed)
      result.append(partitioning.Proposal(target.devices[parts], target))
  return result


def best(problem: placer_lib.Problem, most_vertices: int, first: Arguments,
         further: Sequence[Arguments],
         map_jobs: Map) -> placement_lib.Placement:
  """The best of mappings onto several numbers of devices, by price.

  See `partitioning.best_of_two_rounds`.

  Args:
    problem: The problem to place.
    most_vertices: Largest number of vertices of all mappings of one round.
    first: Arguments of the mappings onto several numbers of devices.
    further: Arguments of further mappings onto the best number.
    map_jobs: Maps graphs onto targets.
  """
  most = max(most_vertices // max(problem.graph.num_groups, 1), 2)

  def mapped(variants: Sequence[Arguments]) -> partitioning.Propose:
    return lambda targets: map_jobs([
        (target, variant) for variant in variants for target in targets
    ][:most], problem.allowed)

  return partitioning.best_of_two_rounds(problem, mapped([first]),
                                         mapped(further))
