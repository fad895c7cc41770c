"""The placement that a human expert gave, made legal."""

from __future__ import annotations

import numpy as np

from gdp_grappler import errors
from gdp_grappler.cluster import constraints
from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib


class HumanExpertPlacer:
  """Puts each group on the device of the expert, if the graph allows it.

  `Problem.expert_devices` names one device per op. A group gets the allowed
  device on which the expert puts most of the group's seconds. If the expert
  named no allowed device, such as a GPU for an op without a GPU kernel, the
  group gets the host, or else the first device it may have.
  """

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: the problem has no expert's placement, or the
        expert's placement does not fit the graph or the cluster.
    """
    graph, cluster, allowed = problem.graph, problem.cluster, problem.allowed
    votes = np.zeros(allowed.shape)
    wanted = _checked(problem)
    # Each op also has a very small vote, so that ops without seconds count.
    np.add.at(votes, (graph.groups, wanted),
              1e-15 + problem.op_seconds[np.arange(graph.num_ops), wanted])
    votes[~allowed] = 0.
    fallback = constraints.fallback_devices(allowed, cluster.host)
    return placement_lib.from_groups(
        graph, np.where(votes.any(axis=1), votes.argmax(axis=1), fallback),
        cluster)


def _checked(problem: placer_lib.Problem) -> np.ndarray:
  """int [N], the expert's device of each op."""
  graph, wanted = problem.graph, problem.expert_devices
  if wanted is None:
    raise errors.InfeasiblePlacementError(
        f'There is no human expert\'s placement of graph "{graph.name}"; the '
        'named workloads have one. Choose another placer for this graph.')
  wanted = np.asarray(wanted)
  if wanted.shape != (graph.num_ops,) or not np.issubdtype(
      wanted.dtype, np.integer):
    raise errors.InfeasiblePlacementError(
        f'The expert\'s placement of graph "{graph.name}" is {wanted.dtype} '
        f'{list(wanted.shape)}; give one integer for each of its '
        f'{graph.num_ops} ops.')
  num_devices = problem.cluster.num_devices
  if wanted.size and not 0 <= wanted.min() <= wanted.max() < num_devices:
    raise errors.InfeasiblePlacementError(
        f'The expert\'s placement of graph "{graph.name}" names devices '
        f'{wanted.min()} to {wanted.max()}; cluster "{problem.cluster.name}" '
        f'has 0 to {num_devices - 1}.')
  return wanted
