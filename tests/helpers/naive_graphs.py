"""Simple versions of the algorithms of `graph_algorithms.cc`."""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import choices
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import union_find


def order(graph: op_graph.OpGraph) -> list[int]:
  """Returns the order of Kahn's algorithm, shorter if edges form a cycle."""
  waiting = np.bincount(graph.edges[:, 1], minlength=graph.num_ops).tolist()
  result = [op for op, count in enumerate(waiting) if not count]
  for op in result:
    for source, target in graph.edges.tolist():
      if source == op:
        waiting[target] -= 1
        if not waiting[target]:
          result.append(target)
  return result


def paths(graph: op_graph.OpGraph,
          seconds: np.ndarray) -> tuple[list[float], list[float]]:
  """Returns the longest paths from a source to each op, and on to a sink."""
  in_order = order(graph)
  down, up = seconds.tolist(), seconds.tolist()
  for op in in_order:
    before = [down[s] for s, t in graph.edges.tolist() if t == op]
    down[op] = max(before, default=0.) + seconds[op]
  for op in reversed(in_order):
    behind = [up[t] for s, t in graph.edges.tolist() if s == op]
    up[op] = seconds[op] + max(behind, default=0.)
  return down, up


def ranks(graph: op_graph.OpGraph, edge_s: np.ndarray,
          seconds: np.ndarray) -> list[float]:
  """Returns the longest path from each op to the end, with times of edges."""
  result = seconds.tolist()
  for op in reversed(order(graph)):
    for (source, target), step_s in zip(graph.edges.tolist(), edge_s.tolist()):
      if source == op:
        result[op] = max(result[op], step_s + result[target])
  return result


def depth_first(graph: op_graph.OpGraph) -> list[float]:
  """Returns positions of ops from the end, with producers before an op."""
  done: list[int] = []

  def do(op: int) -> None:
    for source, target in graph.edges.tolist():
      if target == op and source not in done:
        do(source)
    done.append(op)

  for op in range(graph.num_ops):
    if op not in graph.edges[:, 0]:
      do(op)
  return [float(graph.num_ops - done.index(op)) for op in range(graph.num_ops)]


def coarsen(graph: op_graph.OpGraph, allowed: np.ndarray,
            op_seconds: np.ndarray,
            config: coarsening.CoarseningConfig) -> np.ndarray:
  """Returns the result of `coarsening.coarsen`."""
  sets = union_find.UnionFind(graph.num_groups)
  kinds = choices.kinds(allowed)
  work = np.bincount(graph.groups, op_seconds.min(axis=1),
                     graph.num_groups).tolist()

  def join(a: int, b: int, limit: float) -> None:
    a, b = sets.find(a), sets.find(b)
    if (a != b and kinds[a] == kinds[b] and work[a] + work[b] <= limit):
      total = work[a] + work[b]
      sets.join(a, b)
      work[min(a, b)] = total

  if graph.num_groups > config.min_units:
    target = max(config.min_units, graph.num_groups // config.groups_per_unit)
    fair = np.sum(work) / target
    edges = [(*graph.groups[edge].tolist(), size)
             for edge, size in zip(graph.edges, graph.edge_bytes.tolist())
             if graph.groups[edge[0]] != graph.groups[edge[1]]]
    for a, b, _ in sorted(edges, key=lambda edge: -edge[2]):
      join(a, b, fair)
    slight = sorted(reversed(edges),
                    key=lambda edge: -int(np.log2(max(edge[2], 1024))))
    for ends, others in ((0, 1), (1, 0)):
      for edge in slight:
        if work[sets.find(edge[ends])] < config.light_share * fair:
          join(edge[ends], edge[others], float('inf'))
  labels = sets.numbers()[graph.groups]
  numbers: dict[int, int] = {}
  for op in order(graph):
    numbers.setdefault(int(labels[op]), len(numbers))
  return np.array([numbers[label] for label in labels.tolist()], np.int32)
