"""Units of decision: groups of ops joined until a decision is worth making.

Most ops of a training graph are too small to be worth sending anywhere alone.
Joining them along their largest tensors (the heavy-edge rule of multilevel
partitioning, Karypis and Kumar 1998) keeps what a placement can gain and makes
graphs of ten thousand ops quick to learn.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence
import weakref

import numpy as np

from gdp_grappler.graph import choices
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

COARSE, NESTED, FINE = 'coarse', 'nested', 'fine'
# From what a policy learns in hundreds of trials to what it does in thousands.
NESTED_AIMS = (12, 22, 41, 75, 139, 256)


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


def coarsen(graph: op_graph.OpGraph, allowed: np.ndarray,
            op_seconds: np.ndarray,
            config: CoarseningConfig = CoarseningConfig(),
            within: np.ndarray | None = None) -> np.ndarray:
  """int32 [N], the unit of each op, numbered in topological order.

  A unit is a union of groups that may be joined (`choices.kinds`).

  Args:
    graph: N ops in G groups.
    allowed: bool [G, D].
    op_seconds: float64 [N, D].
    config: How far to join.
    within: int [G]; only groups for which it is the same are joined. None: all.
  """
  labels = np.arange(graph.num_groups)
  if graph.num_groups > config.min_units:
    work = np.bincount(graph.groups, op_seconds.min(axis=1), graph.num_groups)
    target = max(config.min_units, graph.num_groups // config.groups_per_unit)
    fair = work.sum() / target
    edges = _of(graph)
    kinds = choices.kinds(allowed)
    if within is not None:
      kinds = _both(kinds, within)
    labels = native_graph.coarsen(work, kinds, edges.sources, edges.consumers,
                                  edges.heavy, edges.slight, fair,
                                  config.light_share * fair)
  return in_topological_order(graph, labels[graph.groups])


def levels(graph: op_graph.OpGraph, allowed: np.ndarray, op_seconds: np.ndarray,
           counts: Sequence[int]) -> list[np.ndarray]:
  """int [G] each, units of groups, from coarse to fine.

  Args:
    graph: G groups.
    allowed: bool [G, D].
    op_seconds: float64 [N, D].
    counts: Units of each level; levels nearly as fine as the groups are left
      out.
  """
  return [
      coarsen(graph, allowed, op_seconds,
              CoarseningConfig(count, graph.num_groups))[graph.first_ops]
      for count in counts if count < graph.num_groups / 2
  ]


def nested(graph: op_graph.OpGraph, allowed: np.ndarray, op_seconds: np.ndarray,
           aims: Sequence[int] = NESTED_AIMS) -> list[np.ndarray]:
  """Partitions of the ops, each of which divides the sets of the one before.

  Coarsened to several sizes by itself, a graph is cut in different places each
  time: units of one size tie together what another holds apart, and hardly any
  placement of the larger ones can be said by placing the smaller.

  Args:
    graph: N ops in G groups.
    allowed: bool [G, D].
    op_seconds: float64 [N, D].
    aims: Units that the partitions aim at, from few to many. There are more
      where sets of groups have different devices to choose from.

  Returns:
    For each aim int [N], units numbered in topological order.
  """
  found, within = [], np.zeros(graph.num_groups, np.int32)
  for aim in aims:
    units = coarsen(graph, allowed, op_seconds,
                    CoarseningConfig(aim, graph.num_groups + 1), within)
    within = np.zeros(graph.num_groups, np.int32)
    within[graph.groups] = units
    found.append(units)
  return found


def units(kind: str, graph: op_graph.OpGraph, allowed: np.ndarray,
          op_seconds: np.ndarray) -> np.ndarray:
  """int32 [N], the unit of each op, numbered in topological order.

  Args:
    kind: 'coarse': of `coarsen`. 'nested': the smallest of `nested`. 'fine': of
      `groups_as_units`.
    graph: N ops in G groups.
    allowed: bool [G, D].
    op_seconds: float64 [N, D].
  """
  if kind == FINE:
    return groups_as_units(graph)
  if kind == NESTED:
    return nested(graph, allowed, op_seconds)[-1]
  return coarsen(graph, allowed, op_seconds)


def groups_as_units(graph: op_graph.OpGraph) -> np.ndarray:
  """int32 [N], one unit per group, in topological order."""
  return in_topological_order(graph, graph.groups)


@dataclasses.dataclass(frozen=True, eq=False)
class _Edges:
  """Edges between groups, and in what order they join.

  Attributes:
    sources: int32 [C], producer groups.
    consumers: int32 [C].
    heavy: int64 [C], edges, those with the largest tensors first.
    slight: int64 [C], edges in the order in which light units take them: the
      consumer they feed most, or the producer. Small sizes count as equal, so
      that scalar arithmetic goes with what it is for and not with the counter
      that all of it reads.
  """

  sources: np.ndarray
  consumers: np.ndarray
  heavy: np.ndarray
  slight: np.ndarray


# Searches coarsen one graph to several sizes.
_known: weakref.WeakKeyDictionary[op_graph.OpGraph,
                                  _Edges] = weakref.WeakKeyDictionary()


def _of(graph: op_graph.OpGraph) -> _Edges:
  known = _known.get(graph)
  if known is None:
    source, consumer = graph.groups[graph.edges].T
    crossing = source != consumer
    size = graph.edge_bytes[crossing]
    magnitude = np.log2(np.maximum(size, 1024)).astype(np.int8)
    # The last one of those of a magnitude is the first.
    backwards = np.argsort(-magnitude[::-1], kind='stable')
    known = _known[graph] = _Edges(np.ascontiguousarray(source[crossing]),
                                   np.ascontiguousarray(consumer[crossing]),
                                   np.argsort(-size, kind='stable'),
                                   len(size) - 1 - backwards)
  return known


def _both(first: np.ndarray, second: np.ndarray) -> np.ndarray:
  """int32 [G], equal where both are."""
  return unique_rows.distinct([first, second])[1].astype(np.int32)


def in_topological_order(graph: op_graph.OpGraph,
                         labels: np.ndarray) -> np.ndarray:
  """int32 [N], other numbers of sets of ops, by their first ops.

  Args:
    graph: N ops.
    labels: int [N], a number of each op's set.
  """
  if not graph.num_ops:
    return np.zeros(0, np.int32)
  in_order = labels[graph.topological_order]
  found, first = np.unique(in_order, return_index=True)
  rank = np.empty(int(found[-1]) + 1, np.int32)
  rank[found[np.argsort(first)]] = np.arange(len(found))
  return rank[labels]
