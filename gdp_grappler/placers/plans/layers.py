"""The layers of a graph, as its user knows them, and the ops of each layer.

A layer is a name scope that uses variables, or a sibling of such a scope. The
scope of a single op is no layer. The gradient of an op belongs to the layer of
this op. Updates and slots have names in the scope of the optimizer, but belong
to the layer whose variable they change. A variable that several layers share
belongs to the first layer that uses it.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import re
from typing import Iterator

import numpy as np

from gdp_grappler.cluster import layer_map
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.structure import scopes
from gdp_grappler.graph.structure import variable_uses
from gdp_grappler.placers.plans import updates

_Path = tuple[str, ...]
_NUMBERED = re.compile(r'(.+)_\d+')
# Ends the scope of an op's gradients where `tf.gradients` makes them.
_GRADIENT = '_grad'


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
  """A layer with the layers inside it.

  Attributes:
    name: Name that the user gave the layer in the layer around it; '' for the
      whole graph.
    scope: Name of the layer's scope in the scope around it; '' for the whole
      graph.
    ops: int [K], increasing, all ops of the layer.
    own: int [J], increasing, those of `ops` that are in none of `layers`.
    uses_variables: Whether any op of the layer uses a variable.
    layers: Layers inside this one, in the order in which the graph runs them.
  """

  name: str
  scope: str
  ops: np.ndarray
  own: np.ndarray
  uses_variables: bool
  layers: tuple[Layer, ...]


@op_graph.once_per_graph
def of(graph: op_graph.OpGraph) -> Layer:
  """Returns the whole graph as one layer, computed once per graph."""
  return _Reader(graph).read()


def after_forward(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], gradients and all ops that wait for a gradient.

  Some ops have the name of a gradient, but serve the forward pass, too. A
  constant may serve several ops. Grappler merges two ops that compute the same,
  such as a transpose for a convolution and for its gradient, and may keep the
  name of the gradient. So constants, and ops that the forward pass reads, count
  only if they wait for a gradient.

  Args:
    graph: N ops.
  """
  counts = np.array([kind != 'Const' for kind in graph.op_types], bool)
  named = scopes.read(graph).backward & counts
  forward = ~(named | updates.in_optimizers(graph))
  result = np.zeros(graph.num_ops, bool)
  successors, starts = graph.successors
  for op in graph.topological_order.tolist():
    readers = successors[starts[op]:starts[op + 1]]
    result[op] |= named[op] and not forward[readers].any()
    if result[op]:
      result[readers] = True
  return result


def statistics(graph: op_graph.OpGraph) -> np.ndarray:
  """bool [N], variables that the forward pass of a layer updates.

  An example is the moving mean of a batch normalization. Slots and the step
  counter of an optimizer are not among these variables: gradients update the
  slots, and the counter is in no layer.

  Args:
    graph: N ops.
  """
  assigns = graph.where_type(op_kinds.ASSIGNMENTS.__contains__)
  assigns &= ~(after_forward(graph) | updates.in_optimizers(graph))
  assigns &= np.array([bool(layer_map.outermost(n)) for n in graph.names], bool)
  result = np.zeros(graph.num_ops, bool)
  result[graph.edges[assigns[graph.edges[:, 1]], 0]] = True
  return result & (graph.param_bytes > 0)


class _Scope:
  """A name scope in the tree of scopes that is being built."""

  def __init__(self) -> None:
    self.scopes: dict[str, _Scope] = {}
    self.own: list[int] = []

  def below(self, path: _Path) -> _Scope:
    """Returns the scope at a path, and makes it if it is missing."""
    at = self
    for part in path:
      at = at.scopes.setdefault(part, _Scope())
    return at

  def take(self, other: _Scope) -> None:
    """Adds the ops and scopes of another scope."""
    self.own += other.own
    for name, inside in other.scopes.items():
      self.below((name,)).take(inside)

  def all_ops(self) -> Iterator[int]:
    """Yields the ops of the scope and of all scopes inside it."""
    yield from self.own
    for scope in self.scopes.values():
      yield from scope.all_ops()


class _Reader:
  """Reads the layers of N ops."""

  def __init__(self, graph: op_graph.OpGraph) -> None:
    self._graph = graph
    self._holders = variable_uses.reads(graph)
    self._reads = self._holders >= 0
    self._rank = np.empty(graph.num_ops, int)
    self._rank[graph.topological_order] = np.arange(graph.num_ops)
    self._after_forward = after_forward(graph)
    # Only names decide: Grappler may have removed the op of a gradient, and may
    # have kept a constant of that gradient.
    self._is_gradient = scopes.read(graph).backward | np.array(
        [kind == 'Const' for kind in graph.op_types], bool)
    self._variable_scopes = {
        part for label in (*graph.variables, *_names_of_variables(graph))
        if not name_parts.is_guess(label) for part in label.split('/')[:-1]
    }

  def read(self) -> Layer:
    """Returns the whole graph as a layer."""
    root = _Scope()
    for op, path in enumerate(self._paths()):
      root.below(path).own.append(op)
    return self._layer(root, '', '')

  def _paths(self) -> list[_Path]:
    """Returns the scopes of each op, the outermost first."""
    graph = self._graph
    whole = [_as_forward(layer_map.path_of(name)) for name in graph.names]
    ops = set(whole)

    @functools.cache
    def outside_ops(path: _Path) -> _Path:
      """Returns a path without the scopes that belong to a single op."""
      end = next((i for i in range(1, len(path))
                  if path[:i] in ops or self._names_an_op(path[i - 1])),
                 len(path))
      return path[:min(end, len(path)) - 1]

    paths = [outside_ops(path) for path in whole]
    serves = updates.in_optimizers(graph)
    for op in np.flatnonzero(serves):
      paths[op] = ()
    self._join_reads(paths)
    self._bring_home(paths, serves)
    return paths

  def _names_an_op(self, scope: str) -> bool:
    """Whether a scope has the name of an op, and no variable is in the scope.

    MobileNet has a layer `Conv_1`, and TensorFlow has a type of op `Conv`.
    """
    bare = _NUMBERED.sub(r'\1', scope)
    return (name_parts.names_an_op(scope) and self._variable_scopes.isdisjoint(
        (scope, bare)))

  def _join_reads(self, paths: list[_Path]) -> None:
    """Moves reads of variables out of scopes whose other ops are gone.

    Grappler fuses a convolution with the ops that follow it. The scope of the
    convolution then has only its gradient and a read, and is no layer. A layer
    has the name of a scope of variables.
    """
    works = {
        paths[op] for op in np.flatnonzero(~self._reads)
        if not self._is_gradient[op] or self._may_be_layer(paths[op])
    }
    works |= {path[:i] for path in works for i in range(len(path))}
    gone: set[_Path] = set()
    for op in np.flatnonzero(self._reads):
      while paths[op] and paths[op] not in works:
        gone.add(paths[op])
        paths[op] = paths[op][:-1]
    for place, path in enumerate(paths):
      while path in gone:
        path = path[:-1]
      paths[place] = path

  def _may_be_layer(self, path: _Path) -> bool:
    """Whether a scope may be a layer, judged by the scopes of variables."""
    if not self._variable_scopes or not path:
      return True
    bare = _NUMBERED.sub(r'\1', path[-1])
    return not {path[-1], bare}.isdisjoint(self._variable_scopes)

  def _bring_home(self, paths: list[_Path], serves: np.ndarray) -> None:
    """Gives variables, slots and updates the path of the layer they serve."""
    graph = self._graph
    holds = graph.holds_variables
    homes: dict[int, _Path] = {}
    for op in graph.topological_order.tolist():
      group = int(graph.groups[op])
      if holds[group] and paths[op] and not serves[op]:
        homes.setdefault(group, paths[op])
    follows, is_sum = serves | updates.serving(graph), updates.sums(graph)
    successors, starts = graph.successors
    for op in graph.topological_order[::-1].tolist():
      home = homes.get(int(graph.groups[op]))
      if home is not None and (not paths[op] or follows[op]):
        paths[op] = home
      elif follows[op] and not paths[op]:
        readers = successors[starts[op]:starts[op + 1]]
        found = sorted((self._rank[r], paths[r]) for r in readers if paths[r])
        if found and (is_sum[op] or len({path for _, path in found}) == 1):
          paths[op] = found[0][1]

  def _layer(self, scope: _Scope, name: str, part: str) -> Layer:
    """Returns the layer of a scope, with the layers inside it."""
    own, inside = list(scope.own), self._joined(scope.scopes)
    used = {child for child, below in inside.items() if self._used(below)}
    if not used:
      own, inside = list(scope.all_ops()), {}
    names = self._names(inside, used)
    layers = [
        self._layer(below, names[child], child)
        for child, below in inside.items()
    ]
    ops = np.sort(np.array([*own, *(o for l in layers for o in l.ops)], int))
    return Layer(name, part, ops, np.sort(np.array(own, int)),
                 bool(used) or bool(self._reads[own].any()),
                 tuple(sorted(layers, key=lambda layer: self._ends(layer.ops))))

  def _joined(self, inside: dict[str, _Scope]) -> dict[str, _Scope]:
    """Returns scopes, with all calls of a layer in the scope of its first call.

    Keras 3 calls the layer `words` in the scopes 'words_1' and 'words_3', and
    has its variable in 'words'. Calls of a model inside a model have such
    scopes, too, but its variables are in the scopes of its layers.
    """
    result: dict[str, _Scope] = {}
    first: dict[str, _Scope] = {}
    for scope, below in inside.items():
      bare = _NUMBERED.sub(r'\1', scope)
      used = self._used(below)
      if scope in self._variable_scopes or bare in inside or not used:
        result[scope] = below
      elif bare in first and (bare in self._variable_scopes or
                              used <= self._used(first[bare])):
        first[bare].take(below)
      else:
        result[scope] = below
        first.setdefault(bare, below)
    return result

  def _used(self, scope: _Scope) -> set[int]:
    """Returns the ops that hold the variables that a scope reads."""
    return {int(self._holders[op]) for op in scope.all_ops()} - {-1}

  def _ends(self, ops: np.ndarray) -> int:
    """Returns the rank of the last op of a layer that waits for no gradient."""
    forward = ops[~self._after_forward[ops]]
    return int(
        self._rank[forward].max() if forward.size else self._rank[ops].min())

  def _names(self, inside: dict[str, _Scope], used: set[str]) -> dict[str, str]:
    """Returns the names that users gave the layers of sibling scopes.

    Keras 3 opens the scope of a layer twice, and TensorFlow numbers the second
    scope. So 'dense_1' is the layer `dense` if all sibling scopes with
    variables have a number.
    """
    bare = {scope: _NUMBERED.sub(r'\1', scope) for scope in inside}
    twice = {
        name for name, n in collections.Counter(bare.values()).items() if n > 1
    }
    if used <= self._variable_scopes or any(bare[s] == s for s in used):
      return {scope: scope for scope in inside}
    return {
        scope: scope if name in twice else name for scope, name in bare.items()
    }


def _names_of_variables(graph: op_graph.OpGraph) -> Iterator[str]:
  """Yields the names of variable ops without another name, as in TF 1."""
  for name, kind, variable in zip(graph.names, graph.op_types, graph.variables):
    if kind in op_kinds.VARIABLES and not variable:
      yield name


def _as_forward(path: _Path) -> _Path:
  """Returns the path of the forward op that an op belongs to."""
  scopes_of_user = (
      part for part in path[:-1] if part not in name_parts.OF_GRAPPLER)
  return tuple(
      part.removesuffix(_GRADIENT) for part in (*scopes_of_user, path[-1]))
