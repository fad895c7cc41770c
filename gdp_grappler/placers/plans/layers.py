"""The layers of a graph, as its user knows them, and the ops of each layer.

A layer is a name scope that uses variables, or a sibling of such a scope. All
calls of a layer are one layer (`layer_names`). The scope of a single op is no
layer, nor is a scope that only controls a loop. The gradient of an op belongs
to the layer of this op. Updates and slots have names in the scope of the
optimizer, but belong to the layer whose variable they change. A variable that
several layers share belongs to the first layer that uses it.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Iterator, Mapping

import numpy as np

from gdp_grappler.cluster import layer_map
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.structure import scopes
from gdp_grappler.graph.structure import variable_uses
from gdp_grappler.placers.plans import layer_names
from gdp_grappler.placers.plans import updates

_Path = tuple[str, ...]
_NUMBERED = re.compile(r'(.+)_\d+')
# Types of ops that TensorFlow makes for loops and calls, and constants.
_IDLE = op_kinds.NO_KERNEL - op_kinds.VIEWS
# Ends the scope of an op's gradients where `tf.gradients` makes them.
_GRADIENT = '_grad'


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
  """A layer with the layers inside it.

  Attributes:
    name: Name that the user gave the layer in the layer around it; '' for the
      whole graph.
    ops: int [K], increasing, all ops of the layer.
    own: int [J], increasing, those of `ops` that are in none of `layers`.
    layers: Layers inside this one, in the order in which the graph runs them.
  """

  name: str
  ops: np.ndarray
  own: np.ndarray
  layers: tuple[Layer, ...]


@op_graph.once_per_graph
def of(graph: op_graph.OpGraph) -> Layer:
  """Returns the whole graph as one layer, computed once per graph."""
  return _reader(graph).read()


def names(graph: op_graph.OpGraph) -> Mapping[_Path, str]:
  """Returns the names of layers whose scopes have other names, by path."""
  return _reader(graph).names


@op_graph.once_per_graph
def _reader(graph: op_graph.OpGraph) -> _Reader:
  return _Reader(graph)


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
    for op, path in enumerate(self._with_variables()):
      root.below(layer_names.named(path, self.names)).own.append(op)
    return self._layer(root, '')

  @functools.cached_property
  def names(self) -> dict[_Path, str]:
    """Returns the names of layers by path, see `layer_names`."""
    graph = self._graph
    labels = [
        variable or (name if kind in op_kinds.VARIABLES else '') for name, kind,
        variable in zip(graph.names, graph.op_types, graph.variables)
    ]
    # Keras 3 has a variable outside of the scopes in which its layer is called.
    works = np.flatnonzero(self._holders != np.arange(graph.num_ops)).tolist()
    return layer_names.of([self._paths[op] for op in works],
                          self._holders[works].tolist(), labels)

  @functools.cached_property
  def _paths(self) -> list[_Path]:
    """Returns the scopes of each op that TensorFlow has put it in."""
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
    for op in np.flatnonzero(updates.in_optimizers(graph)):
      paths[op] = ()
    self._join_reads(paths)
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

  def _with_variables(self) -> list[_Path]:
    """Returns paths, with those of served layers for slots and updates."""
    graph, paths = self._graph, list(self._paths)
    serves = updates.in_optimizers(graph)
    holds = graph.holds_variables
    # SavedModels have variables outside of the layers that use them.
    is_variable = self._holders == np.arange(graph.num_ops)
    homes: dict[int, _Path] = {}
    for op in sorted(graph.topological_order.tolist(),
                     key=is_variable.__getitem__):
      group = int(graph.groups[op])
      if holds[group] and paths[op] and not serves[op]:
        homes.setdefault(group, paths[op])
    follows, is_sum = serves | updates.serving(graph), updates.sums(graph)
    successors, starts = graph.successors
    for op in graph.topological_order[::-1].tolist():
      home = homes.get(int(graph.groups[op]))
      if home is not None and (not paths[op] or follows[op] or is_variable[op]):
        paths[op] = home
      elif follows[op] and not paths[op]:
        readers = successors[starts[op]:starts[op + 1]]
        found = sorted((self._rank[r], paths[r]) for r in readers if paths[r])
        if found and (is_sum[op] or len({path for _, path in found}) == 1):
          paths[op] = found[0][1]
    return paths

  def _layer(self, scope: _Scope, name: str) -> Layer:
    """Returns the layer of a scope, with the layers inside it."""
    own, inside = list(scope.own), scope.scopes
    if not any(map(self._uses_variables, inside.values())):
      own, inside = list(scope.all_ops()), {}
    for child in [c for c, below in inside.items() if self._is_idle(below)]:
      own += inside.pop(child).all_ops()
    layers = [self._layer(below, child) for child, below in inside.items()]
    ops = np.sort(np.array([*own, *(o for l in layers for o in l.ops)], int))
    return Layer(name, ops, np.sort(np.array(own, int)),
                 tuple(sorted(layers, key=lambda layer: self._ends(layer.ops))))

  def _is_idle(self, scope: _Scope) -> bool:
    """Whether a scope only has constants, and controls a loop or a call."""
    types = self._graph.op_types
    return not self._uses_variables(scope) and all(
        types[op] in _IDLE for op in scope.all_ops())

  def _uses_variables(self, scope: _Scope) -> bool:
    """Whether an op of a scope holds or passes on a variable."""
    return any(self._reads[op] for op in scope.all_ops())

  def _ends(self, ops: np.ndarray) -> int:
    """Returns the rank of the last op of a layer that waits for no gradient."""
    forward = ops[~self._after_forward[ops]]
    return int(
        self._rank[forward].max() if forward.size else self._rank[ops].min())


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
