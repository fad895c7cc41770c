"""Joins groups of ops to units. A policy decides once per unit.

Most ops of a training graph are so small that sending their tensors elsewhere
would cost more than it saves. Groups are joined along their largest tensors
(the heavy-edge rule of multilevel partitioning, Karypis and Kumar 1998). This
keeps most of what a placement can gain, and a policy learns large graphs
faster.
"""

from __future__ import annotations

import dataclasses
from typing import Sequence

import numpy as np

from gdp_grappler.graph import choices
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

COARSE, NESTED, FINE = 'coarse', 'nested', 'fine'
# Numbers of units of nested partitions. A policy learns few units in hundreds
# of trials, and many units in thousands.
NESTED_AIMS = (12, 22, 41, 75, 139, 256)


@dataclasses.dataclass(frozen=True)
class CoarseningConfig:
  """How many units a graph gets, and how small they may be.

  Attributes:
    min_units: Graphs with at most this number of groups are left as they are.
    groups_per_unit: Larger graphs aim at groups / groups_per_unit units.
    light_share: Share of the mean work per unit. Units with less work are
      joined to a neighbour, whatever the size of the tensors between them.
  """

  min_units: int = 512
  groups_per_unit: int = 16
  light_share: float = 0.1


def coarsen(graph: op_graph.OpGraph, allowed: np.ndarray,
            op_seconds: np.ndarray,
            config: CoarseningConfig = CoarseningConfig(),
            within: np.ndarray | None = None) -> np.ndarray:
  """Returns the unit of each op, int32 [N], numbered in topological order.

  A unit is a union of groups that may be joined (see `choices.kinds`).

  Args:
    graph: N ops in G groups.
    allowed: bool [G, D], legal devices of each group.
    op_seconds: float64 [N, D], seconds of each op on each device.
    config: How many units there are, and how small they may be.
    within: int [G], numbers of sets. Only groups of the same set are joined.
      None means that all groups may be joined.
  """
  labels = np.arange(graph.num_groups)
  if graph.num_groups > config.min_units:
    work = np.bincount(graph.groups, op_seconds.min(axis=1), graph.num_groups)
    target = max(config.min_units, graph.num_groups // config.groups_per_unit)
    fair = work.sum() / target
    edges = _of(graph)
    kinds = choices.kinds(allowed)
    if within is not None:
      # Groups are joined only if they are equal in both arrays.
      kinds = unique_rows.distinct([kinds, within])[1].astype(np.int32)
    labels = native_graph.coarsen(work, kinds, edges.sources, edges.consumers,
                                  edges.heavy, edges.slight, fair,
                                  config.light_share * fair)
  return in_topological_order(graph, labels[graph.groups])


def levels(graph: op_graph.OpGraph, allowed: np.ndarray, op_seconds: np.ndarray,
           counts: Sequence[int]) -> list[np.ndarray]:
  """Returns units of groups, int [G] each, at several levels, coarse to fine.

  Args:
    graph: G groups.
    allowed: bool [G, D], legal devices of each group.
    op_seconds: float64 [N, D], seconds of each op on each device.
    counts: Number of units of each level. Levels with at least half as many
      units as groups are left out.
  """
  return [
      coarsen(graph, allowed, op_seconds,
              CoarseningConfig(count, graph.num_groups))[graph.first_ops]
      for count in counts if count < graph.num_groups / 2
  ]


def nested(graph: op_graph.OpGraph, allowed: np.ndarray, op_seconds: np.ndarray,
           aims: Sequence[int] = NESTED_AIMS) -> list[np.ndarray]:
  """Returns partitions of the ops, each a refinement of the one before.

  Calls of `coarsen` for several sizes would cut the graph in different places.
  A unit of one partition would then join ops that another partition separates,
  and hardly any placement of the large units could be expressed by small units.

  Args:
    graph: N ops in G groups.
    allowed: bool [G, D], legal devices of each group.
    op_seconds: float64 [N, D], seconds of each op on each device.
    aims: Numbers of units that the partitions aim at, from few to many. There
      are more units if groups differ in their legal devices.

  Returns:
    One int [N] per aim: the unit of each op, numbered in topological order.
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
  """Returns the unit of each op, int32 [N], numbered in topological order.

  Args:
    kind: 'coarse' for `coarsen`, 'nested' for the finest partition of `nested`,
      'fine' for `groups_as_units`.
    graph: N ops in G groups.
    allowed: bool [G, D], legal devices of each group.
    op_seconds: float64 [N, D], seconds of each op on each device.
  """
  if kind == FINE:
    return groups_as_units(graph)
  if kind == NESTED:
    return nested(graph, allowed, op_seconds)[-1]
  return coarsen(graph, allowed, op_seconds)


def groups_as_units(graph: op_graph.OpGraph) -> np.ndarray:
  """Makes each group a unit, int32 [N], numbered in topological order."""
  return in_topological_order(graph, graph.groups)


@dataclasses.dataclass(frozen=True, eq=False)
class _Edges:
  """Edges between groups, and the orders in which they join groups.

  Attributes:
    sources: int32 [C], producer groups.
    consumers: int32 [C], consumer groups.
    heavy: int64 [C], edges in decreasing order of their tensors' sizes.
    slight: int64 [C], edges in the order in which light units are joined along
      them. Small sizes count as equal, and of equal edges the last one comes
      first. So a scalar joins the arithmetic that it is computed for, not the
      step counter that all such arithmetic reads.
  """

  sources: np.ndarray
  consumers: np.ndarray
  heavy: np.ndarray
  slight: np.ndarray


# A search coarsens one graph to several sizes. So the edges of a graph are
# sorted only once.
@op_graph.once_per_graph
def _of(graph: op_graph.OpGraph) -> _Edges:
  source, consumer = graph.groups[graph.edges].T
  crossing = source != consumer
  size = graph.edge_bytes[crossing]
  magnitude = np.log2(np.maximum(size, 1024)).astype(np.int8)
  # Of edges of equal magnitude the last one has to come first.
  backwards = np.argsort(-magnitude[::-1], kind='stable')
  return _Edges(np.ascontiguousarray(source[crossing]),
                np.ascontiguousarray(consumer[crossing]),
                np.argsort(-size, kind='stable'),
                len(size) - 1 - backwards)


def in_topological_order(graph: op_graph.OpGraph,
                         labels: np.ndarray) -> np.ndarray:
  """Renumbers sets of ops by their first ops in topological order, int32 [N].

  Args:
    graph: N ops.
    labels: int [N], number of each op's set.
  """
  if not graph.num_ops:
    return np.zeros(0, np.int32)
  in_order = labels[graph.topological_order]
  found, first = np.unique(in_order, return_index=True)
  rank = np.empty(int(found[-1]) + 1, np.int32)
  rank[found[np.argsort(first)]] = np.arange(len(found))
  return rank[labels]
