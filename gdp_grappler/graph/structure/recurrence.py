"""What a layer computes from what it computed before, step by step.

In an LSTM the products with the state wait for one another, from the first time
step to the last; those with the input of a step could all run at once. The
latter are as much work, and feed the former from any device without being
waited for. A layer may have several such chains, as one that reads a text from
both ends.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import label_rows
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import union_find

# A chain uses a variable again and again: some use of it has more than this
# share of the others before it, and some has them after it.
_MOST = .5
# At so many times a state is needed: at the next one, and where several chains
# meet.
_FEW = 2


def strands(graph: op_graph.OpGraph, forward: np.ndarray, layer: np.ndarray,
            segment: np.ndarray, variable: np.ndarray) -> np.ndarray:
  """int [V], what part of its layer a variable is used in.

  An odd number for what a chain uses, an even one for the rest, which it does
  not wait for. Where a layer has several chains, numbered from 0 in the order
  of the graph, twice the number of the chain that uses the variable, or that
  its use feeds or follows, is added.

  Args:
    graph: N ops.
    forward: bool [N], what is no part of gradients and updates, and holds no
      variable.
    layer: int [N]; -1 where unknown.
    segment: int [N], the time step; -1 where unknown.
    variable: int [N], the variable that an op uses; -1 for none.
  """
  layers = _Layers(graph, forward, layer, segment)
  users = np.flatnonzero(forward & (variable >= 0))
  of = variable[users]
  count = int(variable.max(initial=-1)) + 1
  least = _MOST * (np.bincount(of, minlength=count) - 1)
  chained = np.ones(count, int)
  for times in (layers.before, layers.after):
    most = np.zeros(count)
    np.maximum.at(most, of, times[users])
    chained &= most > least
  near = layers.chains()[users]
  chains = _usual(of[near >= 0], near[near >= 0], count)
  return 2 * np.maximum(chains, 0) + chained


class _Layers:
  """Ops of one layer, and what they hang on in it.

  Attributes:
    before: float64 [N], most changes of time on a path to each op.
    after: float64 [N], the same on a path from it on.
  """

  def __init__(self, graph: op_graph.OpGraph, forward: np.ndarray,
               layer: np.ndarray, segment: np.ndarray) -> None:
    self._order, self._layer = graph.topological_order, layer
    inside = forward & (layer >= 0) & (segment >= 0)
    edges = graph.edges[(graph.edge_tensors >= 0)
                        & inside[graph.edges].all(axis=1)]
    edges = edges[layer[edges[:, 0]] == layer[edges[:, 1]]]
    now = segment[edges[:, 0]] == segment[edges[:, 1]]
    self._within = edges[now]
    across = _handed_on(edges[~now], segment)
    self._edges = np.concatenate([self._within, across])
    changes = np.repeat([0., 1.], [len(self._within), len(across)])
    none = np.zeros(graph.num_ops)
    self.after = self._on(self._edges, none, changes)
    self.before = self._back(self._edges, none, changes)

  def chains(self) -> np.ndarray:
    """int [N], the chain that an op is on, or feeds, or that feeds it.

    From 0 in each layer; -1 where there is none. On a chain is what hangs on another time of its layer and is needed at
    another; an op feeds one by way of ops of its own layer and time.
    """
    on = (self.before > 0) & (self.after > 0)
    sets = union_find.UnionFind(len(on))
    for a, b in self._edges[on[self._edges].all(axis=1)].tolist():
      sets.join(a, b)
    labels = self._numbered(np.where(on, sets.numbers(), -1)) + 1.
    for spread in (self._on, self._back):
      labels = np.where(labels > 0, labels, spread(self._within, labels))
    return labels.astype(int) - 1

  def _on(self, edges: np.ndarray, values: np.ndarray,
          each: np.ndarray | None = None) -> np.ndarray:
    """float64 [N], the highest value that an op leads to, or its own.

    Args:
      edges: int [E, 2].
      values: float64 [N].
      each: float64 [E], by how much values rise from an edge to the next.
    """
    each = np.zeros(len(edges)) if each is None else each
    return native_graph.ranks(edges, self._order, each, values)

  def _back(self, edges: np.ndarray, values: np.ndarray,
            each: np.ndarray | None = None) -> np.ndarray:
    """The same of what it hangs on."""
    each = np.zeros(len(edges)) if each is None else each
    return native_graph.ranks(edges[:, ::-1], self._order[::-1].copy(), each,
                              values)

  def _numbered(self, sets: np.ndarray) -> np.ndarray:
    """int [N], sets [N] of each layer, numbered from 0 by their first op."""
    own = self._order[sets[self._order] >= 0]
    (layers, found), where = label_rows.distinct([self._layer[own], sets[own]])
    first = np.full(len(found), len(own))
    np.minimum.at(first, where, np.arange(len(own)))
    order = np.lexsort((first, layers))
    number = np.empty(len(found), int)
    begin = np.searchsorted(layers[order], layers[order])
    number[order] = np.arange(len(found)) - begin
    result = np.full(len(sets), -1)
    result[own] = number[where]
    return result


def _handed_on(edges: np.ndarray, segment: np.ndarray) -> np.ndarray:
  """int [E', 2], edges [E, 2] of ops that few other segments need.

  A batch that is taken apart into steps is no chain.
  """
  pairs, _ = label_rows.distinct([edges[:, 0], segment[edges[:, 1]]])
  needed = np.bincount(pairs[0], minlength=len(segment))
  return edges[needed[edges[:, 0]] <= _FEW]


def _usual(keys: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
  """int [count], the label [K] that each key [K] has most often; else -1."""
  (of, label), where = label_rows.distinct([keys, labels])
  result = np.full(count, -1)
  by_count = np.argsort(np.bincount(where, minlength=len(of)), kind='stable')
  result[of[by_count]] = label[by_count]  # The last assignment stays.
  return result
