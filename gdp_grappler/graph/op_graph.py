"""The dataflow graph as frozen arrays."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.graph import native_graph

# Columns of `OpGraph.allowed_types`.
DEVICE_TYPES = ('CPU', 'GPU')
# What TensorFlow calls arguments of functions that have no name.
_NAMELESS = re.compile(r'(^|/)unknown(_\d+)?$')


@dataclasses.dataclass(frozen=True, eq=False)
class OpGraph:
  """A dataflow graph with N ops, T tensors, E edges and G groups.

  Arrays are read-only. Edges form a directed acyclic graph: the edges that
  carry a value to the next iteration of a while loop are left out, because a
  loop frame is one group and therefore lives on one device.

  Attributes:
    name: What users call the graph.
    names: [N] unique op names, in the order of the GraphDef.
    op_types: [N] such as 'MatMul'.
    edges: int32 [E, 2], producer and consumer op.
    edge_tensors: int32 [E], index of the tensor an edge carries; -1 for a
      control edge.
    tensor_ops: int32 [T], the op that produces a tensor.
    tensor_bytes: int64 [T], size of a tensor; 0 for resource handles.
    flops: float64 [N], arithmetic operations of one execution.
    io_bytes: float64 [N], bytes an execution reads and writes.
    param_bytes: int64 [N], memory an op holds for good (variables).
    groups: int32 [N], ops with the same number share one device (0 .. G-1).
    allowed_types: bool [N, 2], whether TensorFlow has a kernel for the op on
      each of `DEVICE_TYPES`.
    pins: [N] device an op has to be on; '' where it is free. Either as
      TensorFlow writes devices or short ('GPU:1').
    user_pins: bool [N], the pin was asked for by the user: it must exist in
      the cluster. Other pins fall back to the host of a cluster that lacks
      the device.
    devices: [N] devices the ops had when the graph was read; '' if none.
    executions: float64 [N], how often an op runs in one step: the trip count
      in a loop, 0 in the branch of a condition that is not taken, else 1.
    stateful: bool [N], TensorFlow calls the op stateful, or does not know it.
    variables: [N] the variable that an op stands for, such as 'dense/kernel',
      where its own name does not say so ('unknown_5'); else ''.
    same_numbers: bool [N, 2], whether an op computes, on each of
      `DEVICE_TYPES`, what it would if nobody placed it, to the last bit; all
      True for ops that nothing is known of.
    may_round: Ops may go where they compute other numbers.
    rounds_by_name: How often an execution of an op launches its kernels, one
      time after the other, where that is not once: time steps times layers of
      a recurrent network that is one op.
    coordinates: int32 [G, C], where groups are (`structure.coordinates`); None
      where names and variables tell.
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
  # Nobody sees the None: ones, False, '' and True take its place.
  executions: np.ndarray = None  # type: ignore[assignment]
  stateful: np.ndarray = None  # type: ignore[assignment]
  variables: tuple[str, ...] = None  # type: ignore[assignment]
  same_numbers: np.ndarray = None  # type: ignore[assignment]
  may_round: bool = False
  rounds_by_name: Mapping[str, float] = dataclasses.field(default_factory=dict)
  coordinates: np.ndarray | None = None

  def __post_init__(self) -> None:
    if self.executions is None:
      object.__setattr__(self, 'executions', np.ones(len(self.names)))
    if self.stateful is None:
      object.__setattr__(self, 'stateful', np.zeros(len(self.names)))
    if self.variables is None:
      object.__setattr__(self, 'variables', ('',) * len(self.names))
    if self.same_numbers is None:
      object.__setattr__(self, 'same_numbers',
                         np.ones((len(self.names), len(DEVICE_TYPES))))
    for field, dtype, shape in (('edges', np.int32, (-1, 2)), ('edge_tensors',
                                                               np.int32, (-1,)),
                                ('tensor_ops', np.int32,
                                 (-1,)), ('tensor_bytes', np.int64,
                                          (-1,)), ('flops', np.float64, (-1,)),
                                ('io_bytes', np.float64,
                                 (-1,)), ('param_bytes', np.int64,
                                          (-1,)), ('groups', np.int32, (-1,)),
                                ('allowed_types', np.bool_,
                                 (-1, len(DEVICE_TYPES))), ('user_pins',
                                                            np.bool_, (-1,)),
                                ('executions', np.float64,
                                 (-1,)), ('stateful', np.bool_,
                                          (-1,)), ('same_numbers', np.bool_,
                                                   (-1, len(DEVICE_TYPES)))):
      array = np.array(getattr(self, field), dtype).reshape(shape)
      array.setflags(write=False)
      object.__setattr__(self, field, array)
    for field in ('names', 'op_types', 'pins', 'devices', 'variables'):
      object.__setattr__(self, field, tuple(getattr(self, field)))
    self._check()

  def _check(self) -> None:
    n = len(self.names)
    for field in ('op_types', 'flops', 'io_bytes', 'param_bytes', 'groups',
                  'allowed_types', 'pins', 'user_pins', 'devices', 'executions',
                  'stateful', 'variables', 'same_numbers'):
      if len(getattr(self, field)) != n:
        raise _invalid(self.name, f'{field} does not have {n} rows')
    if len(self.edges) != len(self.edge_tensors):
      raise _invalid(self.name, 'edges and edge_tensors differ in length')
    if len(self.tensor_ops) != len(self.tensor_bytes):
      raise _invalid(self.name, 'tensor_ops and tensor_bytes differ')
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
    """N."""
    return len(self.names)

  @functools.cached_property
  def num_groups(self) -> int:
    """G."""
    return int(self.groups.max()) + 1 if self.num_ops else 0

  @functools.cached_property
  def first_ops(self) -> np.ndarray:
    """int [G], an op of each group, by which what all share can be read."""
    return np.unique(self.groups, return_index=True)[1]

  @functools.cached_property
  def _types(self) -> tuple[tuple[str, ...], np.ndarray]:
    """Distinct types, and int32 [N] which of these each op has."""
    numbers: dict[str, int] = {}
    of_ops = [numbers.setdefault(t, len(numbers)) for t in self.op_types]
    return tuple(numbers), np.array(of_ops, np.int32)

  def where_type(self, wanted: Callable[[str], bool]) -> np.ndarray:
    """bool [N], ops of the types that are wanted; each type is asked once."""
    types, of_ops = self._types
    return np.fromiter(map(wanted, types), bool, len(types))[of_ops]

  def group_sums(self, values: np.ndarray) -> np.ndarray:
    """float64 [G] or [G, D], sums of values [N] or [N, D] over each group."""
    columns = np.atleast_2d(np.asarray(values).T)
    sums = np.stack([
        np.bincount(self.groups, column, self.num_groups) for column in columns
    ], axis=1)
    return sums if np.ndim(values) > 1 else sums[:, 0]

  @functools.cached_property
  def holds_variables(self) -> np.ndarray:
    """bool [G], whether a group holds memory for good."""
    return self.group_sums(self.param_bytes) > 0

  @functools.cached_property
  def rounds(self) -> np.ndarray:
    """float64 [N], `rounds_by_name` of all ops."""
    if not self.rounds_by_name:
      return np.ones(self.num_ops)
    return np.array([self.rounds_by_name.get(name, 1.) for name in self.names])

  @functools.cached_property
  def pinned_ops(self) -> dict[str, list[int]]:
    """The ops of each pin, where there are any."""
    result: dict[str, list[int]] = {}
    for op in np.flatnonzero(np.fromiter(map(bool, self.pins), bool)).tolist():
      result.setdefault(self.pins[op], []).append(op)
    return result

  @functools.cached_property
  def edge_bytes(self) -> np.ndarray:
    """int64 [E], bytes an edge carries; 0 for control edges."""
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
  def topological_order(self) -> np.ndarray:
    """int32 [N], op indices such that producers come before consumers.

    Kahn's algorithm, first in first out, so that the order is the one in which
    the executor would first see the ops.

    Raises:
      InvalidGraphError: the edges form a cycle.
    """
    starts, targets = self.successor_arrays
    result = native_graph.order(starts, targets)
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
  def successor_arrays(self) -> tuple[np.ndarray, np.ndarray]:
    """Where each op's consumers begin int64 [N + 1], and these int32 [E]."""
    order = np.argsort(self.edges[:, 0], kind='stable')
    starts = np.zeros(self.num_ops + 1, np.int64)
    np.cumsum(np.bincount(self.edges[:, 0], minlength=self.num_ops),
              out=starts[1:])
    return starts, np.ascontiguousarray(self.edges[order, 1])

  @functools.cached_property
  def successors(self) -> tuple[list[int], list[int]]:
    """Consumers sorted by producer [E], and where each op's begin [N + 1]."""
    starts, targets = self.successor_arrays
    return targets.tolist(), starts.tolist()

  @functools.cached_property
  def fingerprint(self) -> str:
    """16 hex digits that change with names, types, edges or sizes.

    Devices do not count: a graph keeps its fingerprint when it is placed.
    """
    digest = hashlib.sha256()
    digest.update('\0'.join(self.names).encode())
    digest.update('\0'.join(self.op_types).encode())
    for array in (self.edges, self.edge_tensors, self.tensor_bytes,
                  self.param_bytes):
      digest.update(array.tobytes())
    return digest.hexdigest()[:16]

  def label(self, op: int | np.integer) -> str:
    """What readers call an op: 'dense/kernel [arg_5]', or its name."""
    return label(self.names[int(op)], self.variables[int(op)])

  def full_label(self, op: int | np.integer) -> str:
    """As `label`, but always with the op's name, by which files list ops."""
    name, variable = self.names[int(op)], self.variables[int(op)]
    return f'{variable} [{name}]' if variable else name

  def holder(self, ops: Sequence[int] | np.ndarray) -> int:
    """The op after whose variable readers would call some ops.

    Of those that hold the most the one with the shortest name: slots are named
    after their variable, with something added.

    Args:
      ops: At least one.
    """
    held = self.param_bytes[ops]
    largest = np.asarray(ops)[held == held.max()]
    return int(min(largest, key=lambda op: (len(self.label(op)), op)))

  def replace(self, **changes: Any) -> OpGraph:
    """A copy with other fields."""
    return dataclasses.replace(self, **changes)


def label(name: str, variable: str) -> str:
  """A variable and, in brackets, the op that stands for it; or the op.

  TensorFlow calls arguments without a name 'unknown', which tells nothing.

  Args:
    name: Of the op.
    variable: Its name, '' for an op that stands for none.
  """
  if not variable:
    return name
  return variable if _NAMELESS.search(name) else f'{variable} [{name}]'


def _invalid(name: str, reason: str) -> errors.InvalidGraphError:
  return errors.InvalidGraphError(f'Graph "{name}" is not usable: {reason}.')
