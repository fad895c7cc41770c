"""Divides a recurrent layer into chains of time steps and ops that feed them.

In an LSTM, products with the state wait for one another, from the first time
step to the last. Products with the input of a step could all run at once. They
are as much work, and could run on other devices without delaying the chain. A
layer may have several chains, for example if it reads a text from both ends.
"""

from __future__ import annotations

import numpy as np

from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import unique_rows

# A chain uses a variable in many time steps. Some use must come after more than
# this share of the variable's other time steps, and some use before as many.
_MOST = .5
# With fewer time steps, a chain cannot be recognized.
_FEWEST = 3
# Largest number of ops between a kernel and the op that uses it.
_PASSED = 3
# A state is needed at few times: at the next one, and where several chains
# meet. Tensors that go to, or come from, more times do not connect chains.
_FEW = 2


def layer_parts(graph: op_graph.OpGraph, forward: np.ndarray, held: np.ndarray,
                layer: np.ndarray, segment: np.ndarray,
                variable: np.ndarray) -> np.ndarray:
  """Returns the part of its layer in which each variable is used, int [V].

  The chains of a layer are numbered from 0 in the order of the graph. The part
  is 2 k + 1 for a variable that chain k uses, and 2 k for a variable whose uses
  only feed or follow chain k. Such uses do not wait for one another. Without a
  chain, k is 0.

  Args:
    graph: N ops.
    forward: bool [N], ops that are no part of gradients and updates.
    held: bool [N], ops that hold or pass on a variable, and constants.
    layer: int [N]; -1 if unknown.
    segment: int [N], time step; -1 if unknown.
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
  """Returns ops and the variables that they use, int [U] each.

  An op that depends only on variables and constants and has little work, such
  as a slice or a mask of a kernel, may run long before its time step. So its
  reader counts as the user instead. If the inputs are constant, all ops depend
  only on constants. Therefore matrix products are always users, and the number
  of skipped ops is limited.
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
    # The edges of each op, one op after the other.
    each = last - first
    where = np.arange(each.sum()) + np.repeat(last - np.cumsum(each), each)
    users, of = unique_rows.distinct([
        np.concatenate([users[~now], leaving[where, 1]]),
        np.concatenate([of[~now], np.repeat(of[now], each)])
    ])[0]
  return users, of


def _times(of: np.ndarray, segments: np.ndarray, count: int) -> np.ndarray:
  """Returns in how many time steps each variable is used, int [count]."""
  (variables, _), _ = unique_rows.distinct([of, segments])
  return np.bincount(variables, minlength=count)


class _Layers:
  """Ops of one layer, and the time steps on paths between them.

  Attributes:
    before: float64 [N], most changes of time step on a path to each op.
    after: float64 [N], most changes of time step on a path from each op.
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
    """Returns the chain that an op is on, feeds, or is fed by, int [N].

    Chains are numbered from 0 in each layer; -1 for none. An op is on a chain
    if it depends on another time step of its layer and another time step needs
    it. An op feeds a chain through ops of its own layer and time step.
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
    """Most changes of time before and after each op, by edges int [E, 2]."""
    edges = np.concatenate([self._within, across])
    changes = np.repeat([0., 1.], [len(self._within), len(across)])
    none = np.zeros(len(self._order))
    return (self._back(edges, none, changes), self._on(edges, none, changes))

  def _on(self, edges: np.ndarray, values: np.ndarray,
          each: np.ndarray | float = 0.) -> np.ndarray:
    """Returns the highest value on paths from an op, float64 [N].

    Args:
      edges: int [E, 2], producer and consumer.
      values: float64 [N], value of each op, which is a lower limit.
      each: float64 [E] or one number, increase of values along each edge.
    """
    return native_graph.ranks(edges, self._order,
                              np.broadcast_to(each, len(edges)), values)

  def _back(self, edges: np.ndarray, values: np.ndarray,
            each: np.ndarray | float = 0.) -> np.ndarray:
    """Returns the highest value on paths to an op; see `_on`."""
    return native_graph.ranks(edges[:, ::-1], self._order[::-1].copy(),
                              np.broadcast_to(each, len(edges)), values)

  def _numbered(self, sets: np.ndarray) -> np.ndarray:
    """Numbers the sets of each layer from 0 by their first ops, int [N]."""
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
  """Marks edges [E, 2] of sources that only few segments read, bool [E]."""
  pairs, _ = unique_rows.distinct([edges[:, 0], segment[edges[:, 1]]])
  segments = np.bincount(pairs[0], minlength=len(segment))
  return segments[edges[:, 0]] <= _FEW


def _usual(keys: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
  """Returns the most frequent label [K] of each key [K], int [count]."""
  (of, label), where = unique_rows.distinct([keys, labels])
  result = np.full(count, -1)
  by_count = np.argsort(np.bincount(where, minlength=len(of)), kind='stable')
  result[of[by_count]] = label[by_count]  # The last assignment stays.
  return result
