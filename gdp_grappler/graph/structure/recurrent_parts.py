"""What a layer computes from what it computed before, step by step.

In an LSTM the products with the state wait for one another, from the first time
step to the last; those with the input of a step could all run at once. The
latter are as much work, and feed the former from any device without being
waited for. A layer may have several such chains, as one that reads a text from
both ends.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

# A chain uses a variable again and again: some use of it has more than this
# share of its other times before it, and some has them after it. Of fewer times
# than that nothing can be told.
_MOST, _FEWEST = .5, 3
# Ops between a kernel and what uses it.
_PASSED = 3
# At so many times a state is needed: at the next one, and where several chains
# meet. What is handed to more, or collected from more, joins no chains.
_FEW = 2


def layer_parts(graph: op_graph.OpGraph, forward: np.ndarray, held: np.ndarray,
                layer: np.ndarray, segment: np.ndarray,
                variable: np.ndarray) -> np.ndarray:
  """int [V], what part of its layer a variable is used in.

  An odd number for what a chain uses, an even one for the rest, which it does
  not wait for. Where a layer has several chains, numbered from 0 in the order
  of the graph, twice the number of the chain that uses the variable, or that
  its use feeds or follows, is added.

  Args:
    graph: N ops.
    forward: bool [N], what is no part of gradients and updates.
    held: bool [N], what holds or hands on a variable, or is a constant.
    layer: int [N]; -1 where unknown.
    segment: int [N], the time step; -1 where unknown.
    variable: int [N], the variable that an op uses; -1 for none.
  """
  forward = forward & ~held
  count = int(variable.max(initial=-1)) + 1
  users, of = _uses(graph, forward, held, variable)
  layers = _Layers(graph, forward, layer, segment)
  times = _times(of, segment[users], count)
  chained = (times >= _FEWEST).astype(int)
  for changes in (layers.before, layers.after):
    most = np.zeros(count)
    np.maximum.at(most, of, changes[users])
    chained &= most > _MOST * (times - 1)
  near = layers.chains()[users]
  chains = _usual(of[near >= 0], near[near >= 0], count)
  return 2 * np.maximum(chains, 0) + chained


def _uses(graph: op_graph.OpGraph, forward: np.ndarray, held: np.ndarray,
          variable: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """int [U] each, ops and the variables that they use.

  An op that hangs on variables and constants alone and has little to do, such
  as a slice or a mask of a kernel, may run long before: what needs it is the
  user. With inputs that are constant nothing hangs on anything else, so that
  products are users in any case, and few ops are passed.
  """
  edges = graph.edges[graph.edge_tensors >= 0]
  begins = ~held
  begins[edges[:, 1]] = False
  hangs = native_graph.ranks(edges[:, ::-1],
                             graph.topological_order[::-1].copy(),
                             np.zeros(len(edges)), begins.astype(float)) > 0
  passed = ~hangs & (graph.flops <= graph.output_bytes)
  leaving = edges[passed[edges[:, 0]] & forward[edges[:, 1]]]
  leaving = leaving[np.argsort(leaving[:, 0], kind='stable')]
  users = np.flatnonzero(forward & (variable >= 0))
  of = variable[users]
  for _ in range(_PASSED):
    now = passed[users]
    first, last = (np.searchsorted(leaving[:, 0], users[now], side)
                   for side in ('left', 'right'))
    # The edges of each, one after the other.
    each = last - first
    where = np.arange(each.sum()) + np.repeat(last - np.cumsum(each), each)
    users, of = unique_rows.distinct([
        np.concatenate([users[~now], leaving[where, 1]]),
        np.concatenate([of[~now], np.repeat(of[now], each)])
    ])[0]
  return users, of


def _times(of: np.ndarray, segments: np.ndarray, count: int) -> np.ndarray:
  """int [count], at how many times each of the variables [U] is used."""
  (variables, _), _ = unique_rows.distinct([of, segments])
  return np.bincount(variables, minlength=count)


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
    self._within, across = edges[now], edges[~now]
    self.before, self.after = self._changes(across)
    few = _needed(across, segment) & _needed(across[:, ::-1], segment)
    self._across = across[few]

  def chains(self) -> np.ndarray:
    """int [N], the chain that an op is on, or feeds, or that feeds it.

    From 0 in each layer; -1 where there is none. On a chain is what hangs on
    another time of its layer and is needed at another; an op feeds one by way
    of ops of its own layer and time.
    """
    before, after = self._changes(self._across)
    on = (before > 0) & (after > 0)
    edges = np.concatenate([self._within, self._across])
    sets = native_graph.components(len(on), edges[on[edges].all(axis=1)])
    labels = self._numbered(np.where(on, sets, -1)) + 1.
    for spread in (self._on, self._back):
      labels = np.where(labels > 0, labels, spread(self._within, labels))
    return labels.astype(int) - 1

  def _changes(self, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Most changes of time before and after each op, by int [E, 2] edges."""
    edges = np.concatenate([self._within, across])
    changes = np.repeat([0., 1.], [len(self._within), len(across)])
    none = np.zeros(len(self._order))
    return (self._back(edges, none, changes), self._on(edges, none, changes))

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
    (layers, found), where = unique_rows.distinct([self._layer[own], sets[own]])
    first = np.full(len(found), len(own))
    np.minimum.at(first, where, np.arange(len(own)))
    order = np.lexsort((first, layers))
    number = np.empty(len(found), int)
    begin = np.searchsorted(layers[order], layers[order])
    number[order] = np.arange(len(found)) - begin
    result = np.full(len(sets), -1)
    result[own] = number[where]
    return result


def _needed(edges: np.ndarray, segment: np.ndarray) -> np.ndarray:
  """bool [E], edges [E, 2] of sources that few segments have an edge with."""
  pairs, _ = unique_rows.distinct([edges[:, 0], segment[edges[:, 1]]])
  segments = np.bincount(pairs[0], minlength=len(segment))
  return segments[edges[:, 0]] <= _FEW


def _usual(keys: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
  """int [count], the label [K] that each key [K] has most often; else -1."""
  (of, label), where = unique_rows.distinct([keys, labels])
  result = np.full(count, -1)
  by_count = np.argsort(np.bincount(where, minlength=len(of)), kind='stable')
  result[of[by_count]] = label[by_count]  # The last assignment stays.
  return result
