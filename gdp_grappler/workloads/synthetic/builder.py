"""Builds a training graph op by op.

Tensors are matrices of single precision. Rows are the elements of a batch,
which are examples or their pixels; columns are features.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import Iterator, NamedTuple, Sequence

import numpy as np

from gdp_grappler.graph import op_graph

_FLOAT_BYTES = 4  # Bytes of a float32.


class Tensor(NamedTuple):
  """An output of an op.

  Attributes:
    number: Index among the graph's tensors.
    op: Op that makes the tensor.
    rows: Number of rows.
    columns: Number of columns.
  """

  number: int
  op: int
  rows: int
  columns: int

  @property
  def elements(self) -> int:
    """The number of elements."""
    return self.rows * self.columns

  @property
  def shape(self) -> tuple[int, int]:
    """The shape, (rows, columns)."""
    return self.rows, self.columns


@dataclasses.dataclass(frozen=True)
class Op:
  """An op, with the facts that its gradient needs.

  Attributes:
    op_type: Type of the op.
    name: Full name of the op.
    stage: Part of the model to which the op belongs.
    inputs: Data inputs.
    outputs: Outputs.
    flops: Arithmetic operations of one execution.
  """

  op_type: str
  name: str
  stage: int
  inputs: tuple[Tensor, ...]
  outputs: tuple[Tensor, ...]
  flops: float


class Builder:
  """A graph that grows.

  Attributes:
    rng: Generator of the random numbers of the graph.
    ops: [N], ops in an order with producers before consumers.
    variables: From the value that was read to the variable's handle.
    stage: Part of the model to which new ops belong.
  """

  def __init__(self, rng: np.random.Generator) -> None:
    """Begins an empty graph."""
    self.rng = rng
    self.ops: list[Op] = []
    self.variables: dict[Tensor, Tensor] = {}
    self.stage = 0
    self._scope = ''
    self._names: dict[str, int] = {}
    self._edges: list[tuple[int, int, int]] = []
    self._groups: list[int] = []
    self._params: list[int] = []
    self._on_gpu: list[bool] = []
    self._tensors: list[tuple[int, int]] = []

  @contextlib.contextmanager
  def scope(self, name: str) -> Iterator[None]:
    """Gives new ops names NAME/..., within the scopes around it."""
    outer = self._scope
    self._scope = f'{outer}{name}/'
    try:
      yield
    finally:
      self._scope = outer

  def add(self, op_type: str, inputs: Sequence[Tensor], *shapes:
          tuple[int, int], flops: float | None = None, group: int | None = None,
          param_bytes: int = 0, on_gpu: bool = True,
          after: Sequence[int] = ()) -> tuple[Tensor, ...]:
    """Adds an op.

    Args:
      op_type: Type of the op.
      inputs: Data inputs in their order.
      *shapes: Shapes of its outputs.
      flops: Arithmetic operations; None for one per element of the outputs.
      group: An op with which it shares a device; None for a free op.
      param_bytes: Memory that it holds in all steps.
      on_gpu: Whether there is a kernel for GPUs.
      after: Ops that are control inputs.

    Returns:
      Its outputs.
    """
    number = len(self.ops)
    outputs = tuple(
        Tensor(len(self._tensors) + i, number, *shape)
        for i, shape in enumerate(shapes))
    if flops is None:
      flops = float(sum(output.elements for output in outputs))
    self._edges += [(tensor.op, number, tensor.number) for tensor in inputs]
    self._edges += [(op, number, -1) for op in after]
    self._tensors += [(number, _FLOAT_BYTES * t.elements) for t in outputs]
    self._groups.append(number if group is None else self._groups[group])
    self._params.append(param_bytes)
    self._on_gpu.append(on_gpu)
    self.ops.append(
        Op(op_type, self._unique(op_type), self.stage, tuple(inputs), outputs,
           flops))
    return outputs

  def one(self, op_type: str, inputs: Sequence[Tensor], shape: tuple[int, int],
          flops: float | None = None) -> Tensor:
    """Adds an op with one output; see `add`."""
    return self.add(op_type, inputs, shape, flops=flops)[0]

  def each(self, op_type: str, *inputs: Tensor) -> Tensor:
    """Adds an op that works element by element."""
    return self.one(op_type, inputs, inputs[0].shape)

  def matmul(self, x: Tensor, weights: Tensor) -> Tensor:
    """Adds the product of two matrices."""
    return self.one('MatMul', (x, weights), (x.rows, weights.columns),
                    2. * x.elements * weights.columns)

  def dense(self, x: Tensor, columns: int) -> Tensor:
    """Adds a dense layer with its own variables."""
    product = self.matmul(x, self.variable(x.columns, columns))
    return self.each('BiasAdd', product, self.variable(1, columns))

  def convolution(self, x: Tensor, columns: int, area: int,
                  rows: int | None = None) -> Tensor:
    """Adds a convolution over the pixels of `x`; windows have `area` pixels."""
    rows = rows or x.rows
    weights = self.variable(area * x.columns, columns)
    return self.one('Conv2D', (x, weights), (rows, columns),
                    2. * rows * weights.elements)

  def variable(self, rows: int, columns: int) -> Tensor:
    """Adds a variable that an optimizer will update, and returns its value."""
    handle = self.handle(rows, columns)
    value, = self.add('ReadVariableOp', (handle,), (rows, columns), flops=0.,
                      group=handle.op)
    self.variables[value] = handle
    return value

  def handle(self, rows: int, columns: int, group: int | None = None) -> Tensor:
    """Adds a variable's handle, in the group of an op if one is given."""
    return self.add('VarHandleOp', (), (0, 0), flops=0., group=group,
                    param_bytes=_FLOAT_BYTES * rows * columns)[0]

  def build(self, name: str) -> tuple[op_graph.OpGraph, np.ndarray]:
    """Returns the graph, and the stages of its ops, int [N]."""
    edges = np.array(self._edges, np.int64).reshape(-1, 3)
    tensors = np.array(self._tensors, np.int64).reshape(-1, 2)
    size = tensors[:, 1]
    data = edges[edges[:, 2] >= 0]
    count = len(self.ops)
    io_bytes = (np.bincount(data[:, 1], size[data[:, 2]], count)
                + np.bincount(tensors[:, 0], size, count))
    groups = np.unique(self._groups, return_inverse=True)[1]
    graph = op_graph.OpGraph(
        name=name, names=tuple(op.name for op in self.ops),
        op_types=tuple(op.op_type for op in self.ops), edges=edges[:, :2],
        edge_tensors=edges[:, 2], tensor_ops=tensors[:, 0], tensor_bytes=size,
        flops=np.array([op.flops for op in self.ops]), io_bytes=io_bytes,
        param_bytes=np.array(self._params), groups=groups,
        allowed_types=np.stack([np.ones(count, bool), self._on_gpu], 1),
        pins=('',) * count, user_pins=np.zeros(count,
                                               bool), devices=('',) * count)
    return graph, np.array([op.stage for op in self.ops])

  def _unique(self, op_type: str) -> str:
    name = f'{self._scope}{op_type}'
    seen = self._names.get(name, 0)
    self._names[name] = seen + 1
    return f'{name}_{seen}' if seen else name


def rounded(value: float, multiple: int = 8) -> int:
  """Rounds to a positive multiple of a number."""
  return max(int(round(value / multiple)), 1) * multiple


def between(rng: np.random.Generator, low: float, high: float) -> float:
  """Draws a number with a uniformly distributed logarithm."""
  return math.exp(rng.uniform(math.log(low), math.log(high)))
