"""A graph whose file brings the costs of its ops, whatever its format.

Profiled graphs of other programs, to be placed and priced where no TensorFlow
is. `graph_json` and `cost_graph` read them; `evaluation.given_costs` prices.
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
from gdp_grappler.graph import op_graph

# Label of seconds that hold on every device.
ANYWHERE = ''
MOST_BYTES = 1 << 53  # Beyond, a JSON number is not exact.
_MOST = 1e30  # Of other numbers: sums and squares are finite.


@dataclasses.dataclass(frozen=True, eq=False)
class GivenCosts:
  """What a file says that the N ops of its graph cost.

  Attributes:
    path: The file, for messages.
    names: [N] ops.
    seconds: Label -> float64 [N], seconds of one step, NaN where the file does
      not say. Labels are device types, devices, models of devices and
      `ANYWHERE`, in the order of the file.
    workspace_bytes: int64 [N], memory while an op runs, on any device.
  """

  path: str
  names: tuple[str, ...]
  seconds: dict[str, np.ndarray]
  workspace_bytes: np.ndarray


@dataclasses.dataclass
class Op:
  """One op while a file is being read.

  Attributes:
    name: Unique in the graph.
    op_type: Its kind.
    seconds: Label -> seconds of one step.
    flops: Arithmetic operations of one step.
    io_bytes: Bytes read and written in one step.
    param_bytes: Memory held for good.
    workspace_bytes: Memory while it runs.
    outputs: Bytes of each output.
    group: Ops with the same label share one device; None if it is free.
    allowed: Whether it may be on each of `op_graph.DEVICE_TYPES`.
    pin: The device it has to be on; '' if it is free.
    device: The device it was on; '' if not known.
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
  """The graph and the costs of the ops that were read.

  Args:
    path: The file.
    name: The graph's.
    ops: [N], of different names.
    edges: (producer, output index or -1 for control, consumer); the inputs of
      an op in their order.

  Raises:
    InvalidGraphError: the edges form a circle.
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
  """What to call the graph of a file that does not say."""
  return re.sub(r'[^\w.-]+', '_', pathlib.Path(path).stem) or 'graph'


def wrong(path: str, where: str, why: str) -> errors.InvalidGraphError:
  """The error about one place of a file; `why` says what to do as well."""
  why = why if why.endswith('?') else f'{why.rstrip(".")}.'
  return errors.InvalidGraphError(f'{path}: {where}: {why}')


def bytes_of(path: str, where: str, value: object) -> int:
  """A number of bytes; parts of a byte count as a whole one.

  Raises:
    InvalidGraphError: it is none.
  """
  number = number_of(path, where, value, 'a number of bytes')
  if number > MOST_BYTES:
    raise wrong(path, where, f'{value!r} bytes are more than any memory has; '
                'give bytes')
  return value if isinstance(value, int) else math.ceil(number)


def number_of(path: str, where: str, value: object, what: str) -> float:
  """A finite number that is not negative.

  Raises:
    InvalidGraphError: it is none.
  """
  if (isinstance(value, bool) or not isinstance(value, (int, float)) or
      not 0 <= value <= sys.float_info.max):
    raise wrong(path, where, f'it is {value!r}; give {what}, 0 or more')
  if value > _MOST:
    raise wrong(path, where, f'{value!r} is more than can be added up; give '
                f'{what}')
  return value


def check_acyclic(path: str, ops: Sequence[Op],
                  edges: Sequence[tuple[int, int, int]]) -> None:
  """Names a circle of edges, if there is one.

  Raises:
    InvalidGraphError: there is.
  """
  consumers: list[list[int]] = [[] for _ in ops]
  waiting = [0] * len(ops)
  for source, _, target in edges:
    consumers[source].append(target)
    waiting[target] += 1
  ready = [op for op, count in enumerate(waiting) if not count]
  for op in ready:
    for target in consumers[op]:
      waiting[target] -= 1
      if not waiting[target]:
        ready.append(target)
  if len(ready) < len(ops):
    names = [f'"{ops[op].name}"' for op in _circle(edges, waiting)]
    if len(names) > 6:
      names[3:-3] = ['...']
    raise wrong(
        path, 'edges', 'they form a cycle, ' + ' -> '.join(names)
        + '; a step must have a first op, so leave out the edge that '
        'goes back')


def _circle(edges: Sequence[tuple[int, int, int]],
            waiting: Sequence[int]) -> list[int]:
  """Ops along a circle, the first again at the end."""
  before = {t: s for s, _, t in edges if waiting[s] and waiting[t]}
  op = next(iter(before))
  seen: dict[int, int] = {}
  while op not in seen:
    seen[op] = len(seen)
    op = before[op]
  return [op, *reversed(list(seen)[seen[op]:])]


def _columns(ops: Sequence[Op]) -> dict[str, np.ndarray]:
  """Label -> float64 [N]."""
  result: dict[str, np.ndarray] = {}
  for i, op in enumerate(ops):
    for label, seconds in op.seconds.items():
      if label not in result:
        result[label] = np.full(len(ops), np.nan)
      result[label][i] = seconds
  return result
