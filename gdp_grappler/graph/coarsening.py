"""Units of decision: groups of ops joined until a decision is worth making.

Most ops of a training graph are too small to be worth sending anywhere alone.
Joining them along their largest tensors (the heavy-edge rule of multilevel
partitioning, Karypis and Kumar 1998) keeps what a placement can gain and makes
graphs of ten thousand ops quick to learn.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from gdp_grappler.graph import op_graph
from gdp_grappler.graph import union_find


@dataclasses.dataclass(frozen=True)
class CoarseningConfig:
  """How far to join.

  Attributes:
    min_units: Graphs with at most so many groups are left as they are.
    groups_per_unit: Larger graphs aim at groups / groups_per_unit units.
    light_share: Units with less than this share of a fair unit's work are
      joined to a neighbour whatever the size of their tensors.
  """

  min_units: int = 512
  groups_per_unit: int = 16
  light_share: float = 0.1


def coarsen(
    graph: op_graph.OpGraph, allowed: np.ndarray, op_seconds: np.ndarray,
    config: CoarseningConfig = CoarseningConfig()
) -> np.ndarray:
  """int32 [N], the unit of each op, numbered in topological order.

  A unit is a union of groups with the same allowed devices.

  Args:
    graph: N ops in G groups.
    allowed: bool [G, D].
    op_seconds: float64 [N, D].
    config: How far to join.
  """
  work = np.bincount(graph.groups, op_seconds.min(axis=1), graph.num_groups)
  target = max(config.min_units, graph.num_groups // config.groups_per_unit)
  sets = _WeightedSets(work, allowed)
  if graph.num_groups > config.min_units:
    fair = work.sum() / target
    source, consumer, size = _group_edges(graph)
    for edge in np.argsort(-size, kind='stable').tolist():
      sets.join_up_to(source[edge], consumer[edge], fair)
    _join_light(sets, source, consumer, size, config.light_share * fair)
  return _in_topological_order(graph, sets.numbers()[graph.groups])


def groups_as_units(graph: op_graph.OpGraph) -> np.ndarray:
  """int32 [N], one unit per group, in topological order."""
  return _in_topological_order(graph, graph.groups)


class _WeightedSets(union_find.UnionFind):
  """Sets that know their work and join only those with the same devices."""

  def __init__(self, work: np.ndarray, allowed: np.ndarray) -> None:
    super().__init__(len(work))
    self.work = work.tolist()
    self._kinds = [row.tobytes() for row in np.packbits(allowed, axis=1)]

  def join_up_to(self, a: int, b: int, limit: float) -> bool:
    """Joins two sets of one kind if they stay below a limit together."""
    a, b = self.find(a), self.find(b)
    total = self.work[a] + self.work[b]
    if a == b or self._kinds[a] != self._kinds[b] or total > limit:
      return False
    self.join(a, b)
    self.work[min(a, b)] = total
    return True


def _group_edges(
    graph: op_graph.OpGraph) -> tuple[list[int], list[int], np.ndarray]:
  """Producer groups, consumer groups and bytes of edges between groups."""
  source, consumer = graph.groups[graph.edges].T
  crossing = source != consumer
  return (source[crossing].tolist(), consumer[crossing].tolist(),
          graph.edge_bytes[crossing])


def _join_light(sets: _WeightedSets, source: Sequence[int],
                consumer: Sequence[int], size: np.ndarray,
                light: float) -> None:
  """Joins light sets to the consumer they feed most, else to a producer.

  Small sizes count as equal, so that scalar arithmetic goes with what it is
  for and not with the counter that all of it reads.
  """
  magnitude = np.log2(np.maximum(size, 1024)).astype(int)
  for ends, others in ((source, consumer), (consumer, source)):
    for edge in np.lexsort((-np.arange(len(size)), -magnitude)).tolist():
      if sets.work[sets.find(ends[edge])] < light:
        sets.join_up_to(ends[edge], others[edge], float('inf'))


def _in_topological_order(graph: op_graph.OpGraph,
                          labels: np.ndarray) -> np.ndarray:
  first = np.full(labels.max() + 1 if len(labels) else 0, graph.num_ops)
  position = np.empty(graph.num_ops, np.int64)
  position[graph.topological_order] = np.arange(graph.num_ops)
  np.minimum.at(first, labels, position)
  rank = np.empty(len(first), np.int32)
  rank[np.argsort(first)] = np.arange(len(first))
  return rank[labels]
