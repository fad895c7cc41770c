"""HDP and its ablations as placers (Mirhoseini et al., ICLR 2018)."""

from __future__ import annotations

import numpy as np

from gdp_grappler.cluster import placement as placement_lib
from gdp_grappler.placers import placer as placer_lib
from placer_model.hdp import config as config_lib
from placer_model.hdp import embedding
from placer_model.hdp import feed_forward
from placer_model.hdp import first_groups
from placer_model.hdp import grouper as grouper_lib
from placer_model.hdp import policy as policy_lib
from placer_model.hdp import search as search_lib
from placer_model.hdp import seq2seq


class HdpPlacer:
  """The hierarchical planner: groups and their devices are learned jointly.

  It returns the best valid placement that it sampled.

  Attributes:
    config: Settings of the search.
    history: [steps] `search.Step` of the last `place`.
  """

  def __init__(self, config: config_lib.HdpConfig | None = None) -> None:
    """Initializes the placer.

    Args:
      config: Settings of the search. None means the defaults.
    """
    self.config = config or config_lib.HdpConfig()
    self.history: tuple[search_lib.Step, ...] = ()

  def place(self, problem: placer_lib.Problem) -> placement_lib.Placement:
    """See `Placer`.

    Raises:
      InfeasiblePlacementError: no sampled placement is valid.
    """
    start = problem.clock()
    search = self._search(problem)
    try:
      return search.run(start)
    finally:
      self.history = tuple(search.history)

  def _search(self, problem: placer_lib.Problem) -> search_lib.Search:
    embedder = self._embedder(problem)
    num_groups = self.config.num_groups(problem.cluster.num_devices)
    first = first_groups.joined(problem, num_groups)
    grouper = grouper_lib.Grouper(embedder.units.shape[1], num_groups,
                                  self.config, weight_seed(problem, 0), first)
    return over_groups(problem, self.config, embedder, num_groups,
                       grouper=grouper)

  def _embedder(self, problem: placer_lib.Problem) -> embedding.GraphEmbedder:
    return embedding.GraphEmbedder(problem.graph, self.config.max_outputs,
                                   self.config.adjacency_size,
                                   self.config.place_scale)


class HdpRandomGroupingPlacer(HdpPlacer):
  """HDP's ablation: random groups, of which only the devices are learned."""

  def _search(self, problem: placer_lib.Problem) -> search_lib.Search:
    num_groups = self.config.num_groups(problem.cluster.num_devices)
    grouping = np.random.default_rng(
        problem.seed % search_lib.SEED_RANGE).integers(
            num_groups, size=problem.graph.num_groups, dtype=np.int32)
    return over_groups(problem, self.config, self._embedder(problem),
                       num_groups, grouping=grouping)


class HdpNoGroupingPlacer(HdpPlacer):
  """HDP's ablation: a feed-forward network places each unit by itself.

  Its input is that of the Grouper. A sequence-to-sequence network over single
  ops is not possible: the cost of attention grows with the square of the number
  of ops.
  """

  def _search(self, problem: placer_lib.Problem) -> search_lib.Search:
    embedder = self._embedder(problem)
    placer = feed_forward.FeedForwardPlacer(embedder.units.shape[1],
                                            problem.cluster.num_devices,
                                            self.config,
                                            weight_seed(problem, 1))
    count = problem.graph.num_groups
    return search_lib.Search(
        problem, policy_lib.Policy(None, placer, embedder.units, self.config),
        lambda _: embedder.units, count, self.config,
        np.arange(count, dtype=np.int32))


def over_groups(problem: placer_lib.Problem, config: config_lib.HdpConfig,
                embedder: embedding.GraphEmbedder, num_groups: int,
                grouper: grouper_lib.Grouper | None = None,
                grouping: np.ndarray | None = None) -> search_lib.Search:
  """Returns a search with the sequence-to-sequence Placer over K groups.

  Args:
    problem: Problem to solve.
    config: Settings of the search.
    embedder: Embedder of the problem's graph.
    num_groups: Number K of groups.
    grouper: Network that chooses the groups; None if `grouping` is given.
    grouping: int [G], fixed groups; None if `grouper` is given.
  """

  def embed(grouping: np.ndarray) -> np.ndarray:
    return embedder.groups(grouping, num_groups)

  width = embed(np.zeros(problem.graph.num_groups, np.int32)).shape[1]
  placer = seq2seq.Seq2SeqPlacer(width, problem.cluster.num_devices, config,
                                 weight_seed(problem, 1))
  policy = policy_lib.Policy(grouper, placer, embedder.units, config)
  return search_lib.Search(problem, policy, embed, num_groups, config, grouping)


def weight_seed(problem: placer_lib.Problem, network: int) -> int:
  """Returns the seed of a network's initial weights."""
  return (2 * problem.seed + network) % search_lib.SEED_RANGE
