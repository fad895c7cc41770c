"""The dataflow graph as frozen arrays."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from typing import Any, Callable, Mapping, Sequence, TypeVar

import numpy as np

from gdp_grappler import errors
from gdp_grappler.graph import native_graph

# Columns of `OpGraph.allowed_types`.
DEVICE_TYPES = ('CPU', 'GPU')
# Bytes of an element of the types that compute at another rate than float32.
ELEMENT_TYPES = {'float16': 2, 'bfloat16': 2, 'float64': 8}
_FLOAT32_BYTES = 4
# TensorFlow's name for arguments of functions that have no name.
_NAMELESS = re.compile(r'(^|/)unknown(_\d+)?$')
# Fields of `OpGraph` with one row for each op, edge or tensor.
_TEXTS = ('names', 'op_types', 'pins', 'devices', 'variables')
_OF_OPS: dict[str, Any] = {
    'flops': np.float64, 'io_bytes': np.float64, 'param_bytes': np.int64,
    'groups': np.int32, 'allowed_types': np.bool_, 'user_pins': np.bool_,
    'executions': np.float64, 'stateful': np.bool_, 'same_numbers': np.bool_
}
_OF_EDGES: dict[str, Any] = {
    'edges': np.int32, 'edge_tensors': np.int32, 'read_on_host': np.bool_
}
_OF_TENSORS: dict[str, Any] = {
    'tensor_ops': np.int32, 'tensor_bytes': np.int64, 'made_on_host': np.bool_
}
_HOST_FLAGS = ('read_on_host', 'made_on_host')
_PAIRS = ('edges', 'allowed_types', 'same_numbers')  # With two columns.
_Result = TypeVar('_Result')


@dataclasses.dataclass(frozen=True, eq=False)
class OpGraph:
  """A dataflow graph with N ops, T tensors, E edges and G groups.

  Arrays are read-only. Edges form a directed acyclic graph: control edges to
  the exits of a while loop replace the edges that carry a value to the next
  iteration (`graph_def_io.read`).

  Attributes:
    name: Name of the graph for users.
    names: [N], unique op names, in the order of the GraphDef.
    op_types: [N], types such as 'MatMul'.
    edges: int32 [E, 2], producer and consumer op.
    edge_tensors: int32 [E], index of the tensor an edge carries; -1 for a
      control edge.
    tensor_ops: int32 [T], the op that produces a tensor.
    tensor_bytes: int64 [T], size of a tensor; 0 for resource handles.
    flops: float64 [N], arithmetic operations of one execution.
    io_bytes: float64 [N], bytes an execution reads and writes.
    param_bytes: int64 [N], memory an op holds in all steps (variables).
    groups: int32 [N], group of each op, 0 .. G-1. Ops of a group share a
      device.
    allowed_types: bool [N, 2], whether TensorFlow has a kernel for the op on
      each of `DEVICE_TYPES`.
    pins: [N], device an op has to be on; '' if the op is free. Either as
      TensorFlow writes devices or short ('GPU:1').
    user_pins: bool [N], whether the user asked for the pin. Such a device must
      exist in the cluster. If the cluster lacks the device of another pin, the
      pin means another device of the same type.
    devices: [N], devices of ops when the graph was read; '' if none.
    executions: float64 [N], how often an op runs in one step: the trip count in
      a loop, 0 in the branch of a condition that is not taken, else 1.
    stateful: bool [N], whether TensorFlow calls the op stateful, or does not
      know it.
    variables: [N], the variable of an op, such as 'dense/kernel', if the op's
      own name ('unknown_5') does not contain it; else ''.
    same_numbers: bool [N, 2], whether an op computes, on each of
      `DEVICE_TYPES`, the same bits as without placement. All are True if
      rounding is unknown, as in graphs with their own costs.
    may_round: Whether ops may go to a device type where they compute other
      numbers.
    rounds_by_name: How often one execution of an op launches its kernels, one
      time after the other, by name of the op: time steps times layers of a
      recurrent network that is one op, rows that are copied into a list,
      launches in the body of a call. Other ops are left out and have 1.
    element_types_by_name: Type of the elements of an op, or of the two parts of
      complex elements, by name of the op, if it is one of `ELEMENT_TYPES`.
      Other ops are left out and count as float32.
    winograd_by_name: Share of an op's FLOPs that Winograd's algorithm computes
      with fewer multiplications, by name of the op (see `winograd`): 1, or less
      for a call. Other ops are left out and have 0.
    host_ops: Names of ops that have all their tensors in the memory of the
      host, and so launch no kernel, even if they are on a GPU.
    made_on_host: bool [T], tensors that an op on a GPU makes in the memory of
      the host, such as shapes.
    read_on_host: bool [E], edges whose consumer, if it is on a GPU, reads the
      tensor in the memory of the host, such as conditions.
    coordinates: int32 [G, C], positions of groups (see
      `structure.coordinates`). None means that they are computed from names and
      variables.
    results: What `once_per_graph` keeps, by the name of the function.
  """

  name: str
  names: tuple[str, ...]
  op_types: tuple[str, ...]
  edges: np.ndarray
  edge_tensors: np.ndarray
  tensor_ops: np.ndarray
  tensor_bytes: np.ndarray
  flops: np.ndarray
  io_bytes: np.ndarray
  param_bytes: np.ndarray
  groups: np.ndarray
  allowed_types: np.ndarray
  pins: tuple[str, ...]
  user_pins: np.ndarray
  devices: tuple[str, ...]
  # `__post_init__` replaces None in these fields.
  executions: np.ndarray = None  # type: ignore[assignment]
  stateful: np.ndarray = None  # type: ignore[assignment]
  variables: tuple[str, ...] = None  # type: ignore[assignment]
  same_numbers: np.ndarray = None  # type: ignore[assignment]
  may_round: bool = False
  rounds_by_name: Mapping[str, float] = dataclasses.field(default_factory=dict)
  element_types_by_name: Mapping[str,
                                 str] = dataclasses.field(default_factory=dict)
  winograd_by_name: Mapping[str,
                            float] = dataclasses.field(default_factory=dict)
  host_ops: frozenset[str] = frozenset()
  made_on_host: np.ndarray = None  # type: ignore[assignment]
  read_on_host: np.ndarray = None  # type: ignore[assignment]
  coordinates: np.ndarray | None = None
  results: dict[str, Any] = dataclasses.field(default_factory=dict, init=False,
                                              repr=False)

  def __post_init__(self) -> None:
    n = len(self.names)
    for field, default in (('executions', np.ones(n)),
                           ('stateful', np.zeros(n)), ('variables', ('',) * n),
                           ('same_numbers', np.ones(
                               (n, 2))), ('made_on_host',
                                          np.zeros(len(self.tensor_ops))),
                           ('read_on_host', np.zeros(len(self.edge_tensors)))):
      if getattr(self, field) is None:
        object.__setattr__(self, field, default)
    for field, dtype in (_OF_OPS | _OF_EDGES | _OF_TENSORS).items():
      array = np.array(getattr(self, field),
                       dtype).reshape((-1, 2) if field in _PAIRS else -1)
      array.setflags(write=False)
      object.__setattr__(self, field, array)
    for field in _TEXTS:
      object.__setattr__(self, field, tuple(getattr(self, field)))
    self._check()

  def _check(self) -> None:
    n = len(self.names)
    for rows, fields in ((n, (*_TEXTS, *_OF_OPS)), (len(self.edges), _OF_EDGES),
                         (len(self.tensor_ops), _OF_TENSORS)):
      for field in fields:
        if len(getattr(self, field)) != rows:
          raise _invalid(self.name, f'{field} does not have {rows} rows')
    for field, bound in (('edges', n), ('tensor_ops', n),
                         ('edge_tensors', len(self.tensor_ops))):
      array = getattr(self, field)
      low = -1 if field == 'edge_tensors' else 0
      if array.size and (array.min() < low or array.max() >= bound):
        raise _invalid(self.name, f'{field} points outside the graph')
    if n and not np.array_equal(np.unique(self.groups),
                                np.arange(self.groups.max() + 1)):
      raise _invalid(self.name, 'groups are not numbered 0 .. G-1')

  @property
  def num_ops(self) -> int:
    """N, the number of ops."""
    return len(self.names)

  @functools.cached_property
  def num_groups(self) -> int:
    """G, the number of groups."""
    return int(self.groups.max()) + 1 if self.num_ops else 0

  @functools.cached_property
  def first_ops(self) -> np.ndarray:
    """int [G], first op of each group, for facts that a group's ops share."""
    return np.unique(self.groups, return_index=True)[1]

  @functools.cached_property
  def _types(self) -> tuple[tuple[str, ...], np.ndarray]:
    """Distinct types, and the index of each op's type, int32 [N]."""
    numbers: dict[str, int] = {}
    of_ops = [numbers.setdefault(t, len(numbers)) for t in self.op_types]
    return tuple(numbers), np.array(of_ops, np.int32)

  def where_type(self, wanted: Callable[[str], bool]) -> np.ndarray:
    """Marks ops whose type is wanted, bool [N], with one call per type."""
    types, of_ops = self._types
    return np.fromiter(map(wanted, types), bool, len(types))[of_ops]

  def group_sums(self, values: np.ndarray) -> np.ndarray:
    """Sums values [N] or [N, D] over each group, float64 [G] or [G, D]."""
    columns = np.atleast_2d(np.asarray(values).T)
    sums = np.stack([
        np.bincount(self.groups, column, self.num_groups) for column in columns
    ], axis=1)
    return sums if np.ndim(values) > 1 else sums[:, 0]

  @functools.cached_property
  def holds_variables(self) -> np.ndarray:
    """bool [G], whether a group holds variables."""
    return self.group_sums(self.param_bytes) > 0

  @functools.cached_property
  def rounds(self) -> np.ndarray:
    """float64 [N], `rounds_by_name` as an array over all ops."""
    return self._of_ops(self.rounds_by_name, 1.)

  @functools.cached_property
  def winograd_shares(self) -> np.ndarray:
    """float64 [N], `winograd_by_name` as an array over all ops."""
    return self._of_ops(self.winograd_by_name, 0.)

  @functools.cached_property
  def works_on_host(self) -> np.ndarray:
    """bool [N], `host_ops` as an array over all ops."""
    return np.fromiter((name in self.host_ops for name in self.names), bool,
                       self.num_ops)

  @functools.cached_property
  def element_types(self) -> np.ndarray:
    """str [N], `element_types_by_name` as an array over all ops."""
    return self._of_ops(self.element_types_by_name, 'float32')

  def _of_ops(self, by_name: Mapping[str, Any],
              default: float | str) -> np.ndarray:
    """[N], values by name of the op as an array over all ops."""
    if not by_name:
      return np.full(self.num_ops, default)
    return np.array([by_name.get(name, default) for name in self.names])

  @functools.cached_property
  def element_bytes(self) -> np.ndarray:
    """int64 [N], bytes of an element of each op."""
    types = self.element_types_by_name
    sizes = {n: ELEMENT_TYPES.get(types[n], _FLOAT32_BYTES) for n in types}
    return self._of_ops(sizes, _FLOAT32_BYTES)

  @functools.cached_property
  def pinned_ops(self) -> dict[str, list[int]]:
    """The ops of each pin."""
    result: dict[str, list[int]] = {}
    for op in np.flatnonzero(np.fromiter(map(bool, self.pins), bool)).tolist():
      result.setdefault(self.pins[op], []).append(op)
    return result

  @functools.cached_property
  def edge_bytes(self) -> np.ndarray:
    """int64 [E], bytes of the tensor of each edge; 0 for control edges."""
    result = np.zeros(len(self.edges), np.int64)
    data = self.edge_tensors >= 0
    result[data] = self.tensor_bytes[self.edge_tensors[data]]
    return result

  @functools.cached_property
  def output_bytes(self) -> np.ndarray:
    """int64 [N], bytes of all outputs of an op."""
    result = np.zeros(self.num_ops, np.int64)
    np.add.at(result, self.tensor_ops, self.tensor_bytes)
    return result

  @functools.cached_property
  def constants(self) -> np.ndarray:
    """bool [N], ops whose kernels keep their output in all steps."""
    return self.where_type('Const'.__eq__)

  @functools.cached_property
  def resident_bytes(self) -> np.ndarray:
    """int64 [N], bytes that ops hold in all steps: variables and constants.

    The file of a graph may give the bytes of a constant as memory, as the size
    of the output, or as both.
    """
    return np.maximum(self.param_bytes, self.output_bytes * self.constants)

  @functools.cached_property
  def topological_order(self) -> np.ndarray:
    """int32 [N], ops with producers before consumers.

    Kahn's algorithm, first in, first out. So the order is the one in which the
    executor would first see the ops.

    Raises:
      InvalidGraphError: the edges form a cycle.
    """
    result = native_graph.order(self.num_ops, self.edges)
    if len(result) < self.num_ops:
      stuck = np.ones(self.num_ops, bool)
      stuck[result] = False
      raise _invalid(
          self.name, 'its edges form a cycle near '
          f'"{self.names[int(stuck.argmax())]}"')
    result.setflags(write=False)
    return result

  @functools.cached_property
  def group_order(self) -> np.ndarray:
    """int64 [G], groups in the topological order of their first ops."""
    first = np.unique(self.groups[self.topological_order], return_index=True)[1]
    result = np.argsort(first)
    result.setflags(write=False)
    return result

  @functools.cached_property
  def successors(self) -> tuple[list[int], list[int]]:
    """Consumers sorted by producer [E], and where each op's begin [N + 1]."""
    order = np.argsort(self.edges[:, 0], kind='stable')
    starts = np.searchsorted(self.edges[order, 0], np.arange(self.num_ops + 1))
    return self.edges[order, 1].tolist(), starts.tolist()

  @functools.cached_property
  def fingerprint(self) -> str:
    """16 hex digits that change with names, types, edges or sizes.

    Devices do not count, so a graph keeps its fingerprint when it is placed.
    """
    digest = hashlib.sha256()
    digest.update('\0'.join(self.names).encode())
    digest.update('\0'.join(self.op_types).encode())
    for array in (self.edges, self.edge_tensors, self.tensor_bytes,
                  self.param_bytes):
      digest.update(array.tobytes())
    return digest.hexdigest()[:16]

  def label(self, op: int | np.integer) -> str:
    """Returns an op's name for users, such as 'dense/kernel [arg_5]'."""
    return label(self.names[int(op)], self.variables[int(op)])

  def full_label(self, op: int | np.integer) -> str:
    """Like `label`, but always contains the op's own name, which files use."""
    name, variable = self.names[int(op)], self.variables[int(op)]
    return f'{variable} [{name}]' if variable else name

  def holder(self, ops: Sequence[int] | np.ndarray) -> int:
    """Returns the op whose variable names a set of ops in messages.

    It is the op with the most memory. If several have the most, it is the one
    with the shortest name, because a slot's name is its variable's name with a
    suffix or prefix.

    Args:
      ops: Indices of ops, at least one.
    """
    held = self.param_bytes[ops]
    largest = np.asarray(ops)[held == held.max()]
    return int(min(largest, key=lambda op: (len(self.label(op)), op)))

  def replace(self, **changes: Any) -> OpGraph:
    """Returns a copy with some fields changed.

    New edges without `read_on_host` have none, nor have new tensors.
    """
    for field, flags in zip(('edges', 'tensor_ops'), _HOST_FLAGS):
      if field in changes:
        changes.setdefault(flags, None)
    return dataclasses.replace(self, **changes)


def label(name: str, variable: str) -> str:
  """Returns a variable with its op in brackets, or only the op.

  An argument that TensorFlow calls 'unknown' is left out, because this name
  says nothing.

  Args:
    name: Name of the op.
    variable: Name of its variable; '' for an op without one.
  """
  if not variable:
    return name
  return variable if _NAMELESS.search(name) else f'{variable} [{name}]'


def once_per_graph(
    function: Callable[[OpGraph], _Result]) -> Callable[[OpGraph], _Result]:
  """Makes a function of a graph keep each result in the graph."""
  name = f'{function.__module__}.{function.__qualname__}'

  @functools.wraps(function)
  def kept(graph: OpGraph) -> _Result:
    if name not in graph.results:
      graph.results[name] = function(graph)
    result: _Result = graph.results[name]
    return result

  return kept


def _invalid(name: str, reason: str) -> errors.InvalidGraphError:
  return errors.InvalidGraphError(f'Graph "{name}" is not usable: {reason}.')
