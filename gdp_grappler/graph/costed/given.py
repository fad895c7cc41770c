"""A graph whose file contains the costs of its ops, in any format.

Such graphs are profiled by other programs, and can be placed and priced without
TensorFlow. `graph_json` and `cost_graph` read them.
`evaluation.costs.given_costs` prices them.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import re
import sys
from typing import Sequence

import numpy as np

from gdp_grappler import errors
from gdp_grappler.graph import native_graph
from gdp_grappler.graph import op_graph

# Label of seconds that count on every device.
ANYWHERE = ''
MOST_BYTES = 1 << 53  # JSON numbers beyond it are not exact.
_MOST = 1e30  # Limit of other numbers, so that sums and squares are finite.


@dataclasses.dataclass(frozen=True, eq=False)
class GivenCosts:
  """The costs in a file of a graph with N ops.

  Attributes:
    path: Path of the file, for messages.
    names: [N], names of ops.
    seconds: float64 [N] by label, seconds of all executions in one step; NaN if
      the file has none. Labels are device types, devices, models of devices and
      `ANYWHERE`, in the order of the file.
    workspace_bytes: int64 [N], memory that an op needs while it runs, on any
      device.
  """

  path: str
  names: tuple[str, ...]
  seconds: dict[str, np.ndarray]
  workspace_bytes: np.ndarray


@dataclasses.dataclass
class Op:
  """One op while a file is being read.

  Attributes:
    name: Name, unique in the graph.
    op_type: Type of the op.
    seconds: Seconds of all executions in one step, by label.
    flops: Arithmetic operations in one step.
    io_bytes: Bytes read and written in one step.
    param_bytes: Memory held in all steps.
    workspace_bytes: Memory needed while the op runs.
    outputs: Bytes of each output.
    group: Label of the op's group, whose ops share a device; None if the op is
      alone.
    allowed: Whether the op may be on each of `op_graph.DEVICE_TYPES`.
    pin: Device that the op has to be on; '' if the op is free.
    device: Device that the op was on; '' if not known.
  """

  name: str
  op_type: str
  seconds: dict[str, float]
  flops: float = 0.
  io_bytes: float = 0.
  param_bytes: int = 0
  workspace_bytes: int = 0
  outputs: list[int] = dataclasses.field(default_factory=list)
  group: str | None = None
  allowed: tuple[bool, ...] = (True,) * len(op_graph.DEVICE_TYPES)
  pin: str = ''
  device: str = ''


def assemble(
    path: str, name: str, ops: Sequence[Op],
    edges: Sequence[tuple[int, int,
                          int]]) -> tuple[op_graph.OpGraph, GivenCosts]:
  """Returns the graph and the costs of the ops that were read.

  Args:
    path: Path of the file, for messages.
    name: Name of the graph.
    ops: [N], ops of different names.
    edges: (producer, output index or -1 for control, consumer). The inputs of
      an op are in their order.

  Raises:
    InvalidGraphError: the edges form a cycle.
  """
  check_acyclic(path, ops, edges)
  counts = [len(op.outputs) for op in ops]
  starts = np.concatenate([[0], np.cumsum(counts)]).astype(int)
  numbers: dict[object, int] = {}
  groups = [
      numbers.setdefault((op.group,) if op.group is not None else i,
                         len(numbers)) for i, op in enumerate(ops)
  ]
  graph = op_graph.OpGraph(
      name=name, names=tuple(op.name for op in ops),
      op_types=tuple(op.op_type for op in ops),
      edges=np.array([(s, t) for s, _, t in edges], np.int32).reshape(-1, 2),
      edge_tensors=np.array(
          [starts[s] + o if o >= 0 else -1 for s, o, _ in edges],
          np.int32), tensor_ops=np.repeat(np.arange(len(ops)), counts),
      tensor_bytes=np.array([size for op in ops for size in op.outputs],
                            np.int64), flops=np.array([op.flops for op in ops],
                                                      np.float64),
      io_bytes=np.array([op.io_bytes for op in ops], np.float64),
      param_bytes=np.array([op.param_bytes for op in ops],
                           np.int64), groups=np.array(groups, np.int32),
      allowed_types=np.array([op.allowed for op in ops],
                             np.bool_), pins=tuple(op.pin for op in ops),
      user_pins=np.array([bool(op.pin) for op in ops],
                         np.bool_), devices=tuple(op.device for op in ops))
  return graph, GivenCosts(
      path, graph.names, _columns(ops),
      np.array([op.workspace_bytes for op in ops], np.int64))


def graph_name(path: str) -> str:
  """Returns a name for the graph of a file that has none."""
  return re.sub(r'[^\w.-]+', '_', pathlib.Path(path).stem) or 'graph'


def wrong(path: str, where: str, why: str) -> errors.InvalidGraphError:
  """Returns an error about one place of a file; `why` also says what to do."""
  why = why if why.endswith('?') else f'{why.rstrip(".")}.'
  return errors.InvalidGraphError(f'{path}: {where}: {why}')


def bytes_of(path: str, where: str, value: object) -> int:
  """Checks a number of bytes, and rounds it up.

  Raises:
    InvalidGraphError: the value is not a number of bytes.
  """
  number = number_of(path, where, value, 'a number of bytes')
  if number > MOST_BYTES:
    raise wrong(
        path, where, f'{errors.shown(value)} bytes are more than any '
        'memory has; give bytes')
  return value if isinstance(value, int) else math.ceil(number)


def number_of(path: str, where: str, value: object, what: str) -> float:
  """Checks a finite number that is not negative.

  Raises:
    InvalidGraphError: the value is no such number.
  """
  if (isinstance(value, bool) or not isinstance(value, (int, float)) or
      not 0 <= value <= sys.float_info.max):
    raise wrong(path, where,
                f'it is {errors.shown(value)}; give {what}, 0 or more')
  if value > _MOST:
    raise wrong(
        path, where, f'{errors.shown(value)} is more than can be added '
        f'up; give {what}')
  return value


def check_acyclic(path: str, ops: Sequence[Op],
                  edges: Sequence[tuple[int, int, int]]) -> None:
  """Raises an error with the ops of a cycle, if there is one.

  Raises:
    InvalidGraphError: the edges form a cycle.
  """
  in_order = native_graph.order(len(ops), [(s, t) for s, _, t in edges])
  if len(in_order) < len(ops):
    left = set(range(len(ops))) - set(in_order.tolist())
    names = [f'"{ops[op].name}"' for op in _cycle(edges, left)]
    if len(names) > 6:
      names[3:-3] = ['...']
    raise wrong(
        path, 'edges', 'they form a cycle, ' + ' -> '.join(names)
        + '; a step must have a first op, so leave out the edge that '
        'goes back')


def _cycle(edges: Sequence[tuple[int, int, int]], left: set[int]) -> list[int]:
  """Returns the ops of a cycle, with the first one again at the end.

  Args:
    edges: Edges of all ops.
    left: Ops that have a cycle before them.
  """
  before = {t: s for s, _, t in edges if s in left and t in left}
  op = next(iter(before))
  seen: dict[int, int] = {}
  while op not in seen:
    seen[op] = len(seen)
    op = before[op]
  return [op, *reversed(list(seen)[seen[op]:])]


def _columns(ops: Sequence[Op]) -> dict[str, np.ndarray]:
  """Returns float64 [N], seconds of all ops, by label."""
  result: dict[str, np.ndarray] = {}
  for i, op in enumerate(ops):
    for label, seconds in op.seconds.items():
      if label not in result:
        result[label] = np.full(len(ops), np.nan)
      result[label][i] = seconds
  return result
