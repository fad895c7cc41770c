"""The nodes of a GraphDef, their edges, and kinds of nodes that are alike.

Large graphs repeat themselves: many ops have the same type and attributes and
the same device. So a function of a node is called only once per kind of nodes.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Callable, Iterator, overload, Sequence, TypeVar

import numpy as np
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2

from gdp_grappler import errors
from gdp_grappler import native

_T = TypeVar('_T')
# From an op and one of its outputs to dimensions; None if their number is
# unknown.
ShapeOf = Callable[[int, int], Sequence[int] | None]


class Edges(Sequence[tuple[int, int, int]]):
  """(producer, output or -1 for control, consumer) of every input.

  Tuples are made only if the edges are used as a sequence. `np.asarray` gives
  the array int32 [E, 3].
  """

  def __init__(self, array: np.ndarray) -> None:
    """Keeps an array of edges, int32 [E, 3]."""
    self._array = array

  def __array__(self, dtype: np.dtype | None = None,
                copy: bool | None = None) -> np.ndarray:
    return np.array(self._array, dtype, copy=copy)

  @functools.cached_property
  def _tuples(self) -> list[tuple[int, int, int]]:
    return list(zip(*self._array.T.tolist()))

  def __len__(self) -> int:
    return len(self._array)

  def __iter__(self) -> Iterator[tuple[int, int, int]]:
    return iter(self._tuples)

  @overload
  def __getitem__(self, index: int) -> tuple[int, int, int]:
    ...

  @overload
  def __getitem__(self, index: slice) -> list[tuple[int, int, int]]:
    ...

  def __getitem__(
      self,
      index: int | slice) -> tuple[int, int, int] | list[tuple[int, int, int]]:
    return self._tuples[index]


class NodeTable:
  """N nodes of K kinds.

  Nodes of one kind may differ in name, inputs, tensors that are attributes, and
  in the values of `_class`, `shared_name`, `container`, `frame_name` and
  `index`.

  Attributes:
    graph_name: Name of the graph in errors.
    nodes: [N], NodeDefs.
    names: [N], names of nodes.
    edges: Edges of all inputs, in the order of nodes and their inputs.
    kinds: int32 [N], kind of each node, 0 .. K - 1.
    handle: Owner of the `NodeTable` of node_table.h.
  """

  def __init__(self, graph_name: str, graph_def: graph_pb2.GraphDef) -> None:
    """Reads a graph.

    Args:
      graph_name: Name of the graph in errors.
      graph_def: N nodes, which must not change.

    Raises:
      InvalidGraphError: two nodes have one name, an input is not in the graph,
        or the graph is larger than 2 GB.
      PluginError: the native library is missing.
    """
    self.graph_name = graph_name
    # Each access to an element of a repeated field makes a Python object.
    self.nodes = list(graph_def.node)
    self.names = [node.name for node in self.nodes]
    lib, data = _library(), graph_def.SerializeToString()
    self.handle = _Handle(lib.gdp_nodes_new(data, len(data)))
    self._check()
    self.edges = Edges(
        copied(lib.gdp_nodes_edges(self.handle.address),
               3 * lib.gdp_nodes_num_edges(self.handle.address),
               np.int32).reshape(-1, 3))
    self.kinds = copied(lib.gdp_nodes_kinds(self.handle.address),
                        len(self.nodes), np.int32)
    self._kind_list = self.kinds.tolist()
    self._first = np.unique(self.kinds, return_index=True)[1]

  def _check(self) -> None:
    lib, address = _library(), self.handle.address
    if not address:
      raise errors.InvalidGraphError(
          f'Graph "{self.graph_name}" is larger than TensorFlow can read: '
          'more than 2 GB. Keep its weights in variables.')
    op = lib.gdp_nodes_faulty_node(address)
    if op < 0:
      return
    place = lib.gdp_nodes_faulty_input(address)
    if place < 0:
      raise errors.InvalidGraphError(
          f'Graph "{self.graph_name}" has two nodes of the same name.')
    raise errors.InvalidGraphError(
        f'Node "{self.names[op]}" of graph "{self.graph_name}" has an input '
        f'"{self.nodes[op].input[place]}" that is not in the graph. The file '
        'is incomplete; export it again.')

  def of_kinds(self, function: Callable[[node_def_pb2.NodeDef],
                                        _T]) -> list[_T]:
    """Returns a function's value for one node of each kind, [K]."""
    return [function(self.nodes[op]) for op in self._first.tolist()]

  def each(self, function: Callable[[node_def_pb2.NodeDef], _T]) -> list[_T]:
    """Returns a function's value for each node, [N], with one call per kind."""
    values = self.of_kinds(function)
    return [values[kind] for kind in self._kind_list]

  def flags(self, function: Callable[[node_def_pb2.NodeDef],
                                     bool]) -> np.ndarray:
    """Returns `each` of a boolean function as an array, bool [N]."""
    return np.array(self.of_kinds(function), bool)[self.kinds]

  @functools.cached_property
  def types(self) -> frozenset[str]:
    """The types of all ops."""
    return frozenset(self.of_kinds(lambda node: node.op))


class _Handle:
  """Owns a native `NodeTable`."""

  def __init__(self, address: int | None) -> None:
    self.address = address

  def __del__(self) -> None:
    if self.address:
      _library().gdp_nodes_delete(self.address)


def copied(address: int | None, size: int,
           dtype: type[np.generic]) -> np.ndarray:
  """Returns a copy of a native array, [size]."""
  if not size:
    return np.zeros(0, dtype)
  data = ctypes.string_at(ctypes.c_void_p(address),
                          size * np.dtype(dtype).itemsize)
  return np.frombuffer(data, dtype).copy()


@functools.cache
def _library() -> ctypes.CDLL:
  lib = native.load(native.Library.GRAPPLER)
  lib.gdp_nodes_new.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
  lib.gdp_nodes_delete.restype = None
  lib.gdp_nodes_num_edges.restype = ctypes.c_int64
  for name in ('new', 'edges', 'kinds'):
    getattr(lib, f'gdp_nodes_{name}').restype = ctypes.c_void_p
  for name in ('edges', 'num_edges', 'kinds', 'faulty_node', 'faulty_input',
               'delete'):
    getattr(lib, f'gdp_nodes_{name}').argtypes = [ctypes.c_void_p]
  return lib
