"""Coordinates of ops in a graph that repeats itself.

Training graphs are made in loops: over layers, over time steps, over branches.
Each iteration of such a loop adds ops to the graph. A search that moves single
ops does not find out that the ops of a layer or of a time step belong together.
Coordinates give each op the counters of its loops.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows
from gdp_grappler.graph.structure import label_propagation
from gdp_grappler.graph.structure import recurrent_parts
from gdp_grappler.graph.structure import scopes as scopes_lib
from gdp_grappler.graph.structure import variable_uses

NAMES = ('layer', 'segment', 'stack', 'cell', 'branch', 'variable',
         'repetition', 'layer_part')
# Largest number of families that are examined: those with the most ops.
_MOST_FAMILIES = 16
# Share of the members of a family that must feed one another to form a
# sequence.
_SEQUENCE = .5
# Share of the ops with variables for which numbers in names are enough.
_ENOUGH = .5
# The label of a variable is the most frequent label of the ops that use it.
# The labels of ops are labels of layers if at least this share of the ops has
# the label of its variable.
_ONE_LAYER = .8


@dataclasses.dataclass(frozen=True, eq=False)
class Coordinates:
  """The positions of G groups in C coordinates.

  Attributes:
    values: int32 [G, C], from 0; -1 if unknown. Read-only.
      layer: The layer, in the order of first use. Numbers in names that form a
        sequence are layers. If these numbers do not agree with the variables, a
        layer is a repetition in the sequence of variables.
      segment: Time step or part of a batch, that is, a group of ops that use
        the same variables again. Without numbers in names it is `repetition`,
        scaled to a common number.
      stack, cell: Outer and inner number of layers with two or more numbers.
      branch: The branch, by numbers in names whose ops do not feed one another.
      variable: Variable that the group uses or holds, by first use.
      repetition: Number of the group's use among all uses of this variable.
      layer_part: Part of a layer: ops of a chain over time steps, or ops that
        feed a chain (`recurrent_parts`).
    names: [C], names of the coordinates: `NAMES`.
  """

  values: np.ndarray
  names: tuple[str, ...] = NAMES

  def __getitem__(self, name: str) -> np.ndarray:
    """Returns one coordinate, int32 [G]."""
    return self.values[:, self.names.index(name)]

  @property
  def readable(self) -> tuple[str, ...]:
    """Names of the coordinates with at least two values."""
    ends = self.values.max(axis=0, initial=-1)
    return tuple(name for name, end in zip(self.names, ends) if end > 0)


@op_graph.once_per_graph
def of(graph: op_graph.OpGraph) -> Coordinates:
  """Returns `graph.coordinates` or, without these, computed coordinates.

  They are computed once per graph from numbers in scopes of names. A number
  counts time steps if its members use the same variables, and layers if they
  use different ones. Without such numbers, the order in which variables are
  used is taken. A gradient has the coordinates of its forward op. Other ops get
  the coordinates of their neighbours. A group has the coordinates of its
  largest variable that is used or, without one, of its op with the most work.
  """
  values = graph.coordinates
  if values is None:
    values = _of_groups(graph, _Reader(graph).read())
  values = np.array(values, np.int32)
  values.setflags(write=False)
  return Coordinates(values)


class _Reader:
  """Computes the coordinates of N ops."""

  def __init__(self, graph: op_graph.OpGraph) -> None:
    self._graph = graph
    # Grappler merges equal constants, so the name of a constant means nothing.
    constant = graph.constants
    found = scopes_lib.read(graph)
    self._scopes = found.take(~constant[found.ops])
    backward = found.backward & ~constant
    reads = variable_uses.reads(graph)
    self._descent = label_propagation.Inheritance(graph,
                                                  (reads >= 0) | constant)
    # Updates have names of their own. They follow or accompany gradients.
    late = self._descent.inherited(np.where(backward, 0, -1)) >= 0
    self._forward = ~late & ~constant & (_leading_to(graph, backward)
                                         | ~backward.any())
    self._order = _by_longest_path(graph, self._forward)
    self._uses = variable_uses.find(graph, reads, self._order)
    self._using = self._uses.variables >= 0

  def read(self) -> np.ndarray:
    """Returns the coordinates of all ops, int [N, C]."""
    found = {name: np.full(self._graph.num_ops, -1) for name in NAMES}
    found.update(variable=self._uses.variables,
                 repetition=self._uses.repetitions)
    found.update(self._by_names())
    layer = found['layer']
    if not (self._enough(layer) and self._is_of_variables(layer)):
      periods = self._uses.periods()
      found['layer'] = np.append(periods, -1)[self._uses.variables]
    if not self._enough(found['segment']):
      found['segment'] = self._times()
    values = np.stack([self._complete(found[name]) for name in NAMES], axis=1)
    values[:, NAMES.index('layer_part')] = self._layer_parts(values)
    self._own_variables(values)
    return values

  def _layer_parts(self, values: np.ndarray) -> np.ndarray:
    """Returns the layer parts of the variables of ops, int [N]."""
    layer, segment, variable = (values[:, NAMES.index(name)]
                                for name in ('layer', 'segment', 'variable'))
    held = self._uses.reads | self._graph.constants
    found = recurrent_parts.layer_parts(self._graph, self._forward, held, layer,
                                        segment, self._uses.variables)
    return np.append(found, -1)[variable]

  def _enough(self, labels: np.ndarray) -> bool:
    using = self._using
    return bool((labels[using] >= 0).sum() > _ENOUGH * using.sum())

  def _is_of_variables(self, labels: np.ndarray) -> bool:
    """Whether most ops with one variable have one label of a layer.

    Keras numbers calls and layers alike: the second call of `dense` is
    'dense_1', as is the second layer.
    """
    some = self._using & (labels >= 0)
    pairs, where = unique_rows.distinct(
        [self._uses.variables[some], labels[some]])
    most = np.zeros(int(pairs[0].max(initial=-1)) + 1, int)
    np.maximum.at(most, pairs[0], np.bincount(where))
    return bool(most.sum() >= _ONE_LAYER * some.sum())

  def _complete(self, labels: np.ndarray) -> np.ndarray:
    """Fills in labels of forward ops, then of gradients and other ops."""
    if not (labels >= 0).any():
      return labels
    forward = np.where(self._uses.reads | ~self._forward, -1,
                       self._descent.inherited(labels))
    forward = np.where(labels >= 0, labels, forward)
    linked = self._scopes.forward_ops
    forward = np.where((forward < 0) & (linked >= 0), forward[linked], forward)
    return self._descent.filled(forward)

  def _own_variables(self, values: np.ndarray) -> None:
    """Gives variables their first user's coordinates, without time steps."""
    owner, users = self._uses.owners, np.flatnonzero(self._using)
    mine = np.flatnonzero(self._uses.reads)
    first = np.full(int(self._uses.variables.max(initial=-1)) + 2, -1)
    # The first user is assigned last, so it stays. Index -1 is the array's
    # last.
    first[self._uses.variables[users[::-1]]] = users[::-1]
    user = first[owner[mine]]
    values[mine] = np.where((user >= 0)[:, None], values[user], values[mine])
    for name in ('segment', 'repetition'):
      values[mine, NAMES.index(name)] = -1

  def _times(self) -> np.ndarray:
    """Returns repetitions, scaled to the usual number of uses, int [N]."""
    variables = self._uses.variables[self._using]
    result = np.full(self._graph.num_ops, -1)
    if not variables.size:
      return result
    counts = np.bincount(variables)
    ops_by_count = np.bincount(counts, counts)
    ops_by_count[:2] = 0
    if not ops_by_count.any():
      return result
    usual = int(ops_by_count.argmax())
    several = counts[variables] > 1
    result[self._using] = np.where(
        several,
        self._uses.repetitions[self._using] * usual // counts[variables], -1)
    return result

  def _by_names(self) -> dict[str, np.ndarray]:
    """Returns the coordinates from numbers in names, int [N] each."""
    n, found = self._graph.num_ops, self._scopes
    times, layers = self._kinds()
    in_time = found.take(np.isin(found.families, times))
    in_layers = found.take(np.isin(found.families, layers))
    parallel = [f for f in layers.tolist() if not self._is_sequence(f)]
    branches = in_layers.take(np.isin(in_layers.families, parallel))
    depths = in_layers.take(~np.isin(in_layers.families, parallel))
    first, last = depths.first(n), depths.last(n)
    nested = first != last
    return {
        'segment': _members(in_time, in_time.first(n)),
        'branch': _members(branches, branches.last(n)),
        'stack': np.where(nested, _members(depths, first), -1),
        'cell': np.where(nested, _members(depths, last), -1),
        'layer': self._in_order_of_use(_combined(depths, n)),
    }

  def _kinds(self) -> tuple[np.ndarray, np.ndarray]:
    """Returns families of time steps, and of layers.

    Families whose ops use no variables are in neither.
    """
    found = self._scopes
    rows = self._using[found.ops]
    families, members = found.families[rows], found.members[rows]
    if not families.size:
      return families, families
    variables = self._uses.variables[found.ops[rows]]
    both, where = unique_rows.distinct([families, variables])
    low = np.full(both.shape[1], np.iinfo(int).max)
    high = np.full(both.shape[1], -1)
    np.minimum.at(low, where, members)
    np.maximum.at(high, where, members)
    ops = np.bincount(where, minlength=both.shape[1])
    count = int(families.max()) + 1
    all_ops = np.bincount(both[0], ops, count)
    in_time = np.bincount(both[0], ops * (high > low), count) > all_ops / 2
    usual = np.argsort(-all_ops, kind='stable')[:_MOST_FAMILIES]
    usual = usual[all_ops[usual] > 0]
    again = np.isin(usual, found.families[found.again])
    return usual[in_time[usual]], usual[~in_time[usual] & ~again]

  def _is_sequence(self, family: int) -> bool:
    """Whether the members of a family feed one another."""
    own = self._scopes.take(self._scopes.families == family)
    at = own.first(self._graph.num_ops)
    where = np.flatnonzero(self._forward & (at >= 0))
    pairs, place = unique_rows.distinct(
        [own.siblings[at[where]], own.members[at[where]]])
    label = np.full(self._graph.num_ops, -1)
    label[where] = place
    # Members may also feed one another through ops between them.
    given = self._descent.inherited(label)
    source, target = self._graph.edges.T
    source, target = given[source], label[target]
    some = (source >= 0) & (target >= 0) & (source != target)
    source, target = source[some], target[some]
    fed = np.unique(target[pairs[0, source] == pairs[0, target]]).size
    could = pairs.shape[1] - np.unique(pairs[0]).size
    return bool(fed and fed >= _SEQUENCE * could)

  def _in_order_of_use(self, labels: np.ndarray) -> np.ndarray:
    """Renumbers labels by the first forward op that has them, int [N]."""
    order = self._order
    seen = order[labels[order] >= 0]
    found, first = np.unique(labels[seen], return_index=True)
    rank = np.full(int(labels.max(initial=-1)) + 2, -1)
    rank[found[np.argsort(first)]] = np.arange(len(found))
    return rank[labels]


def _leading_to(graph: op_graph.OpGraph, ends: np.ndarray) -> np.ndarray:
  """Marks the given ops bool [N] and all ops that they depend on, bool [N]."""
  # The longest path counts the given ops on it.
  return native_graph.longest_to_sinks(graph.edges, graph.topological_order,
                                       ends) > 0


def _by_longest_path(graph: op_graph.OpGraph,
                     forward: np.ndarray) -> np.ndarray:
  """Returns the forward ops, sorted by the longest path from each op, int [F].

  The longest comes first. So an op that could run at once but is needed late,
  such as an op on the initial state of a layer, comes where it is needed.
  """
  edges = graph.edges[forward[graph.edges].all(axis=1)]
  ahead = native_graph.ranks(edges, graph.topological_order,
                             np.ones(len(edges)), np.zeros(graph.num_ops))
  in_order = graph.topological_order[forward[graph.topological_order]]
  return in_order[np.argsort(-ahead[in_order], kind='stable')]


def _members(scopes: scopes_lib.Scopes, entries: np.ndarray) -> np.ndarray:
  """Returns the members of entries [N], int [N]; -1 without an entry."""
  return np.append(scopes.members, -1)[entries]


def _combined(scopes: scopes_lib.Scopes, num_ops: int) -> np.ndarray:
  """Labels ops with the same entries alike, int [N]; -1 without any."""
  result = np.full(num_ops, -1)
  left = scopes
  while len(left.ops):
    first = left.first(num_ops)
    some = np.flatnonzero(first >= 0)
    _, where = unique_rows.distinct(
        [result[some], left.families[first[some]], left.members[first[some]]])
    # Ops without an entry at this depth keep their label, so new labels are
    # larger.
    result[some] = len(result) + where
    result = np.unique(np.append(result, -1), return_inverse=True)[1][:-1] - 1
    rest = np.ones(len(left.ops), bool)
    rest[first[some]] = False
    left = left.take(rest)
  return result


def _of_groups(graph: op_graph.OpGraph, values: np.ndarray) -> np.ndarray:
  """Returns the coordinates of each group's heaviest op, int [G, C].

  Ops with some coordinate come first, because a slot weighs as much as its
  variable.
  """
  if not graph.num_ops:
    return np.zeros((0, len(NAMES)), int)
  order = np.lexsort((-np.arange(graph.num_ops), graph.flops + graph.io_bytes,
                      graph.param_bytes, (values
                                          >= 0).any(axis=1), graph.groups))
  heaviest = np.empty(graph.num_groups, int)
  heaviest[graph.groups[order]] = order
  return values[heaviest]
