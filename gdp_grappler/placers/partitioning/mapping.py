"""Mappings of graphs onto targets, by Scotch and Mt-KaHyPar.

Both libraries get the same jobs, run in a process of their own, and refuse some
jobs. Their placers propose in the same two rounds.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from gdp_grappler.placers.partitioning import arrangement
from gdp_grappler.placers.partitioning import partition_process
from gdp_grappler.placers.partitioning import partitioning

# Arguments of a library for one mapping, by name.
Arguments = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Mapper:
  """Maps graphs onto targets by a library.

  Attributes:
    worker: Runs the library.
    distances: Function that returns float64 [k, k], the distances between the
      devices of a target for the library; None if distances do not count.
    most_vertices: Largest number of vertices of all mappings of one round
      together. It limits the time of a large graph to seconds.
  """

  worker: partition_process.Worker
  distances: Callable[[partitioning.Target], np.ndarray | None]
  most_vertices: int

  def best(self, problem: placer_lib.Problem, first: Arguments,
           further: Sequence[Arguments]) -> placement_lib.Placement:
    """The best of mappings onto several numbers of devices, by price.

    See `partitioning.best_of_two_rounds`.

    Args:
      problem: The problem to place.
      first: Arguments of the mappings onto several numbers of devices.
      further: Arguments of further mappings onto the best number.
    """
    deadline = problem.deadline()

    def mapped(variants: Sequence[Arguments]) -> partitioning.Propose:
      return lambda targets: self.map(problem, [
          (target, variant) for variant in variants for target in targets
      ], deadline)

    return partitioning.best_of_two_rounds(problem, mapped([first]),
                                           mapped(further))

  def map(self, problem: placer_lib.Problem,
          jobs: Sequence[tuple[partitioning.Target, Arguments]],
          deadline: deadlines.Deadline) -> list[partitioning.Proposal]:
    """Maps graphs onto targets; skips jobs that the library refuses.

    If the time is over, only the first proposal is priced. This proposal
    should use several devices, because `partitioning.best` prices single
    devices in any case. So targets of one device come last.

    Args:
      problem: The problem to place.
      jobs: Target and arguments of each mapping, the most useful ones first.
        Those beyond `most_vertices` are left out, but never the first two. One
        device needs no mapping.
      deadline: The end of the time budget.
    """
    most = max(self.most_vertices // max(problem.graph.num_groups, 1), 2)
    jobs = sorted(jobs[:most], key=lambda job: len(job[0].devices) == 1)
    mapped = iter(
        self.worker.run_each([
            dict(graph=target.graph, shares=target.shares, fixed=target.fixed,
                 distances=self.distances(target), **arguments)
            for target, arguments in jobs if len(target.devices) > 1
        ], deadline))
    result = []
    for target, _ in jobs:
      parts = (next(mapped) if len(target.devices) > 1 else np.zeros(
          target.graph.num_vertices, int))
      if parts is not None:
        parts = arrangement.arrange(parts, target, problem.allowed)
        result.append(partitioning.Proposal(target.devices[parts], target))
    return result
