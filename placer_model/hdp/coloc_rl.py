"""ColocRL: an LSTM Placer over hand-made co-location groups.

Mirhoseini et al., Device Placement Optimization with Reinforcement Learning
(ICML 2017), section 3.3: an op whose output only one other op consumes is
grouped with that op, and the ops of one layer, or of one step of a layer, are
grouped together.
"""

from __future__ import annotations

import re

import numpy as np

from gdp_grappler.graph import choices
from gdp_grappler.graph import coarsening
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import union_find
from gdp_grappler.placers import placer as placer_lib
from placer_model.hdp import placers
from placer_model.hdp import search as search_lib

# Name scopes that gradients and optimizers put around a layer's own scope, and
# the suffix of an op's gradient.
_WRAPPERS = frozenset(('gradients', 'gradient_tape', 'StatefulPartitionedCall',
                       'PartitionedCall', 'training', 'optimizer', 'update'))
_GRADIENT = re.compile(r'_grad(_\d+)?$')
# Sets of ops, int [C], and the number of leading scopes that they share.
_Part = tuple[np.ndarray, int]


class ColocRlPlacer(placers.HdpPlacer):
  """Learns devices for fixed groups; see `hand_made_groups`."""

  def _search(self, problem: placer_lib.Problem) -> search_lib.Search:
    grouping = hand_made_groups(problem.graph, problem.allowed,
                                problem.op_seconds.min(axis=1),
                                self.config.coloc_groups)
    return placers.over_groups(problem, self.config, self._embedder(problem),
                               int(grouping.max(initial=0)) + 1,
                               grouping=grouping)


def hand_made_groups(graph: op_graph.OpGraph, allowed: np.ndarray,
                     seconds: np.ndarray, max_groups: int) -> np.ndarray:
  """Returns the group of each unit, int32 [G], in topological order.

  First, a unit joins the unit that alone consumes one of its ops' outputs, if
  both may have the same devices. If more than `max_groups` sets result, the
  tree of name scopes is cut into parts, and the sets in a part form a group. In
  the tree, a gradient belongs to the scope of its op. The part with the most
  work is halved by work, with branches in topological order, until there are
  `max_groups` parts.

  Args:
    graph: Graph of N ops in G units.
    allowed: bool [G, D], allowed devices of each unit.
    seconds: float64 [N], work of the ops.
    max_groups: Largest number of groups, at least 1.
  """
  sets = _with_only_consumer(graph, allowed)
  count = int(sets.max(initial=-1)) + 1
  of_ops = sets[graph.groups]
  if count > max_groups:
    sets = _Layers(graph, of_ops, count, seconds).cut(max_groups)[sets]
    of_ops = sets[graph.groups]
  return coarsening.in_topological_order(graph, of_ops)[graph.first_ops]


def _with_only_consumer(graph: op_graph.OpGraph,
                        allowed: np.ndarray) -> np.ndarray:
  """Returns the set of each unit, int [G], from 0 to count - 1."""
  source, target = graph.groups[graph.edges].T
  kinds = choices.kinds(allowed)
  # An op has one consumer if its lowest and its highest one are equal.
  lowest = np.full(graph.num_ops, graph.num_groups)
  highest = np.full(graph.num_ops, -1)
  np.minimum.at(lowest, graph.edges[:, 0], target)
  np.maximum.at(highest, graph.edges[:, 0], target)
  only = np.flatnonzero(lowest == highest)
  unit, consumer = graph.groups[only], highest[only]
  union = union_find.UnionFind(graph.num_groups)
  for a, b in zip(unit.tolist(), consumer.tolist()):
    if kinds[a] == kinds[b]:
      union.join(a, b)
  return union.numbers()


class _Layers:
  """Divides sets of ops into parts of the tree of name scopes."""

  def __init__(self, graph: op_graph.OpGraph, sets: np.ndarray, count: int,
               seconds: np.ndarray) -> None:
    self._work = np.bincount(sets, seconds, count)
    at = np.empty(graph.num_ops, np.int64)
    at[graph.topological_order] = np.arange(graph.num_ops)
    self._place = np.full(count, graph.num_ops)
    np.minimum.at(self._place, sets, at)
    # The scope of a set is that of its costliest op.
    leader = np.zeros(count, np.int64)
    order = np.argsort(seconds, kind='stable')
    leader[sets[order]] = order
    self._paths = [(*_scope(graph.names[op]), f'\0{i}')
                   for i, op in enumerate(leader.tolist())]

  def cut(self, max_parts: int) -> np.ndarray:
    """Returns the part of each set, int [count]."""
    parts: list[_Part] = [(np.arange(len(self._paths)), 0)]
    done: list[_Part] = []
    while parts and len(parts) + len(done) < max_parts:
      heaviest = max(range(len(parts)),
                     key=lambda i: self._work[parts[i][0]].sum())
      members, depth = parts.pop(heaviest)
      if len(members) == 1:
        done.append((members, depth))
      else:
        parts.extend(self._halve(members, depth))
    result = np.empty(len(self._paths), np.int64)
    for number, (members, _) in enumerate(parts + done):
      result[members] = number
    return result

  def _halve(self, members: np.ndarray, depth: int) -> tuple[_Part, _Part]:
    """Returns two parts of about equal work.

    Parts are cut between scopes at the first depth with several scopes.
    """
    while True:
      keys = np.unique([self._paths[i][depth] for i in members.tolist()],
                       return_inverse=True)[1].reshape(-1)
      if keys.max():
        break
      depth += 1
    first = np.full(keys.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, keys, self._place[members])
    order = np.argsort(first)
    # Each set has a little work, so that sets without work are halved too.
    work = np.bincount(keys, self._work[members] + 1e-12)[order]
    total = np.cumsum(work)
    cut = int(np.abs(total - total[-1] / 2)[:-1].argmin())
    left = np.isin(keys, order[:cut + 1])
    return (members[left], depth), (members[~left], depth)


def _scope(name: str) -> tuple[str, ...]:
  parts = [_GRADIENT.sub('', p) for p in name.split('/')]
  return tuple(p for p in parts[:-1] if p not in _WRAPPERS)
