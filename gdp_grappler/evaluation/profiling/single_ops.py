"""Seconds of the distinct ops of a graph, one at a time.

The module serves cards whose driver does not report kernels (no CUPTI). Ops of
one type with equal attributes and equal types and shapes of inputs (or of the
variables that are inputs) and outputs count as one op. The device first
computes matrix products that take longer than the launches, and then copies of
the op (`kernel_times` explains the method). Inputs are synthetic, except small
integers such as axes and shapes, which come from the graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import types
from typing import Any, Iterator, Mapping, Sequence

import numpy as np

from gdp_grappler import deadlines
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.graph import op_kinds

# Integers with at most this many elements are fetched from the graph.
_MOST_ELEMENTS = 256
# Bytes of inputs that are allocated at a time.
_CHUNK_BYTES = 1 << 30
# Ops that are timed in one graph.
_MOST_OF_A_CHUNK = 40
_COPIES = 16  # Copies of an op that run in a row.
_ROUNDS = 3  # Timed runs of each step, of which the shortest counts.
_PRODUCT = 2048  # Rows of the matrices that keep a GPU busy beforehand.
# Least seconds of all these products, so that all launches end before them.
_AHEAD_S = 2e-3
_PROBE = 8  # Products that are timed to find the time of one.


@dataclasses.dataclass(frozen=True)
class _Distinct:
  """Ops that count as one op.

  Attributes:
    node: NodeDef of one of the ops.
    inputs: Data inputs of this op, as tensors of the graph.
    names: Names of all the ops.
  """

  node: Any
  inputs: tuple[Any, ...]
  names: tuple[str, ...]

  @property
  def size_bytes(self) -> int:
    """Bytes of the inputs; a resource has the bytes of its variable."""
    return sum(_size_bytes(t) for t in self.inputs)


def seconds(tf: types.ModuleType, session: Any, names: Sequence[str],
            device: str, ahead: bool,
            deadline: deadlines.Deadline) -> dict[str, float]:
  """Seconds of each node that could be timed.

  Args:
    tf: TensorFlow.
    session: Session whose graph is initialized and placed.
    names: Nodes to be timed, the most important first.
    device: Full name of the nodes' device.
    ahead: Whether the host launches ops ahead of the device.
    deadline: Deadline; nodes that are not timed by then have no result.
  """
  kinds = _distinct(session.graph, names)
  known = _small_values(tf, session, kinds)
  kinds = [kind for kind in kinds if _can_be_made(kind, known)]
  products = _products_ahead(tf, device) if ahead else 0
  result: dict[str, float] = {}
  for chunk in _chunks(kinds):
    if deadline.passed:
      break
    for kind, found in zip(chunk,
                           _timed(tf, chunk, known, device, products,
                                  deadline)):
      if found is not None:
        result.update(dict.fromkeys(kind.names, found))
  return result


def launches_kernels(op_type: str) -> bool:
  """Whether an op of this type is timed."""
  return op_type not in op_kinds.NO_KERNEL | op_kinds.CONTROL_FLOW


def _distinct(graph: Any, names: Sequence[str]) -> list[_Distinct]:
  """Distinct ops, in the order of their first nodes."""
  found: dict[bytes, tuple[Any, tuple[Any, ...], list[str]]] = {}
  for name in names:
    op = graph.get_operation_by_name(name)
    node = op.node_def
    if not launches_kernels(op.type):
      continue
    key = _key(node, op)
    found.setdefault(key, (node, tuple(op.inputs), []))[2].append(name)
  return [
      _Distinct(node, inputs, tuple(members))
      for node, inputs, members in found.values()
  ]


def _key(node: Any, op: Any) -> bytes:
  """A key. Ops with the same key are timed once.

  An input may hold the shape of an output. So ops with an output of unknown
  shape have the same key only if they have the same small integers.
  """
  plain = type(node)()
  plain.op = node.op
  for name, value in node.attr.items():
    if not name.startswith('_'):
      plain.attr[name].CopyFrom(value)
  key: list[Any] = [
      (t.dtype.name, str(t.shape), _variable(t)) for t in op.inputs
  ]
  key += [str(t.shape) for t in op.outputs]
  if not all(t.shape.is_fully_defined() for t in op.outputs):
    key += [t.name for t in op.inputs if _is_small_integer(t)]
  return plain.SerializeToString(deterministic=True) + repr(key).encode()


def _small_values(tf: types.ModuleType, session: Any,
                  kinds: Sequence[_Distinct]) -> Mapping[str, np.ndarray]:
  """Values of inputs that are small integers, by the name of the tensor.

  Tensors in a loop, or in a branch that is not taken, have no value.
  """
  wanted = {
      t.name: t for kind in kinds for t in kind.inputs if _is_small_integer(t)
  }
  try:
    return session.run(wanted)
  except (tf.errors.OpError, ValueError):
    result = {}
    for name, tensor in wanted.items():
      with contextlib.suppress(tf.errors.OpError, ValueError):
        result[name] = session.run(tensor)
    return result


def _is_small_integer(tensor: Any) -> bool:
  count = tensor.shape.num_elements()
  return (tensor.dtype.is_integer and count is not None and
          count <= _MOST_ELEMENTS)


def _can_be_made(kind: _Distinct, known: Mapping[str, np.ndarray]) -> bool:
  """Whether all inputs are known or can be synthetic."""
  return all(
      t.name in known or t.dtype.base_dtype.name == 'resource' and _variable(t)
      is not None or t.shape.is_fully_defined() and not _is_small_integer(t) and
      (t.dtype.is_floating or t.dtype.is_integer or t.dtype.is_bool)
      for t in kind.inputs)


def _variable(handle: Any) -> tuple[Any, list[int]] | None:
  """Type and dimensions of the variable behind a handle, if they are known."""
  op = handle.op
  if op.type != 'VarHandleOp':
    return None
  shape = op.get_attr('shape')
  dims = [dim.size for dim in shape.dim]
  if shape.unknown_rank or min(dims, default=0) < 0:
    return None
  return op.get_attr('dtype'), dims


def _size_bytes(tensor: Any) -> int:
  """Bytes that `_Makers` allocates for a tensor of known shape."""
  dtype, dims = _variable(tensor) or (tensor.dtype.base_dtype,
                                      tensor.shape.as_list())
  # Other types than floats are kept as int64.
  return math.prod(dims) * (dtype.size if dtype.is_floating else 8)


def _chunks(kinds: Sequence[_Distinct]) -> Iterator[list[_Distinct]]:
  chunk: list[_Distinct] = []
  size = 0
  for kind in kinds:
    if chunk and (size + kind.size_bytes > _CHUNK_BYTES or
                  len(chunk) == _MOST_OF_A_CHUNK):
      yield chunk
      chunk, size = [], 0
    chunk.append(kind)
    size += kind.size_bytes
  if chunk:
    yield chunk


def _timed(tf: types.ModuleType, chunk: Sequence[_Distinct],
           known: Mapping[str, np.ndarray], device: str, products: int,
           deadline: deadlines.Deadline) -> list[float | None]:
  """Seconds of each distinct op; None for an op that could not be timed."""
  with tf.Graph().as_default() as graph:
    makers = _Makers(tf, known)
    with tf.device(device):
      busy = [_busy(tf, products)] if products else []
      inputs = [[makers.make(t, n) for n, t in enumerate(kind.inputs)]
                for kind in chunk]
      copies = [
          _copied(tf, graph, kind, number, given, busy, device)
          for number, (kind, given) in enumerate(zip(chunk, inputs))
      ]
    with tf.compat.v1.Session(config=_config()) as session:
      try:
        session.run(tf.compat.v1.global_variables_initializer())
      except tf.errors.OpError:  # For example, the inputs exceed the memory.
        return [None] * len(chunk)
      result: list[float | None] = []
      for given, members in zip(inputs, copies):
        if deadline.passed:
          result.append(None)
          continue
        before = [*busy, *(t.op for t in given)]
        result.append(_difference_s(tf, session, before, members))
      return result


def _difference_s(tf: types.ModuleType, session: Any, before: Sequence[Any],
                  copies: Sequence[Any]) -> float | None:
  """Seconds of a copy; None if it failed, or if its time is lost in noise."""
  import time
  try:
    steps = [
        session.make_callable(ops) for ops in ([*before], [*before, *copies])
    ]
    rows: list[list[float]] = [[], []]
    for number in range(1 + _ROUNDS):
      for step, row in zip(steps, rows):
        begin = time.perf_counter()
        step()
        if number:  # In the first round cuDNN chooses algorithms.
          row.append(time.perf_counter() - begin)
  except (tf.errors.OpError, ValueError):
    return None
  difference_s = min(rows[1]) - min(rows[0])
  return difference_s / len(copies) if difference_s > 0 else None


def _copied(tf: types.ModuleType, graph: Any, kind: _Distinct, number: int,
            given: Sequence[Any], busy: Sequence[Any],
            device: str) -> list[Any]:
  """Copies of an op on synthetic inputs, which run after the ops in `busy`."""
  graph_def = graph.as_graph_def().__class__(versions=graph.graph_def_versions)
  for copy in range(_COPIES):
    node = graph_def.node.add()
    node.CopyFrom(kind.node)
    node.name, node.device = f'gdp_{number}_{copy}', device
    del node.input[:]
    node.input.extend(f'in_{i}:0' for i in range(len(given)))
    for key in [k for k in node.attr if k.startswith('_')]:
      del node.attr[key]
  waiting = [_after(tf, tensor, busy) for tensor in given]
  tf.graph_util.import_graph_def(
      graph_def, name='',
      input_map={f'in_{i}:0': tensor for i, tensor in enumerate(waiting)})
  return [
      graph.get_operation_by_name(f'gdp_{number}_{copy}')
      for copy in range(_COPIES)
  ]


def _after(tf: types.ModuleType, tensor: Any, busy: Sequence[Any]) -> Any:
  """The tensor, available after the launch of `busy`; copies no data."""
  if not busy:
    return tensor
  with tf.device(tensor.device), tf.control_dependencies(busy):
    return tf.raw_ops.Identity(input=tensor)


class _Makers:
  """Makes synthetic inputs; ops share inputs of one type and shape."""

  def __init__(self, tf: types.ModuleType, known: Mapping[str,
                                                          np.ndarray]) -> None:
    """Begins without inputs.

    Args:
      tf: TensorFlow.
      known: Values of tensors by name, which are used as they are.
    """
    self._tf, self._known = tf, known
    self._made: dict[tuple[Any, ...], Any] = {}

  def make(self, tensor: Any, ordinal: int) -> Any:
    """A tensor with type and shape of a tensor of another graph.

    Inputs of one op have different ordinals, so that they are not shared.
    """
    if tensor.name in self._known:
      with self._tf.device('/device:CPU:0'):
        return self._tf.constant(self._known[tensor.name], tensor.dtype)
    variable = _variable(tensor) if (tensor.dtype.base_dtype
                                     == self._tf.resource) else None
    dtype, shape = variable or (tensor.dtype.base_dtype, tensor.shape)
    dims = self._tf.TensorShape(shape).as_list()
    key = (self._tf.as_dtype(dtype), *dims, ordinal)
    if key not in self._made:
      self._made[key] = self._new(self._tf.as_dtype(dtype), dims)
    made = self._made[key]
    return made.handle if variable else self._value(made, tensor.dtype)

  def _new(self, dtype: Any, dims: list[int]) -> Any:
    kept = dtype if dtype.is_floating else self._tf.int64
    return self._tf.compat.v1.Variable(lambda: self._tf.ones(dims, kept),
                                       use_resource=True, trainable=False)

  def _value(self, variable: Any, dtype: Any) -> Any:
    """The variable's value, cast from int64 if integers are wanted.

    Integers are kept as int64, because GPUs have kernels for such variables.
    """
    value = variable.read_value()
    dtype = dtype.base_dtype
    return value if value.dtype == dtype else self._tf.cast(value, dtype)


def _busy(tf: types.ModuleType, count: int) -> Any:
  """The last op of a chain of matrix products."""
  left = tf.compat.v1.Variable(lambda: tf.ones([_PRODUCT, _PRODUCT]),
                               use_resource=True, trainable=False).read_value()
  last = left
  for _ in range(count):
    last = tf.raw_ops.MatMul(a=left, b=last)
  return last.op


def _products_ahead(tf: types.ModuleType, device: str) -> int:
  """Number of products that take longer than the launches of all copies."""
  import time
  with tf.Graph().as_default(), tf.device(device):
    ends = [_busy(tf, count) for count in (1, 1 + _PROBE)]
    with tf.compat.v1.Session(config=_config()) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      spent = []
      for end in ends:
        step = session.make_callable([end])
        for _ in range(3):
          begin = time.perf_counter()
          step()
          last_s = time.perf_counter() - begin
        spent.append(last_s)
  return 1 + int(_AHEAD_S / max((spent[1] - spent[0]) / _PROBE, 1e-5))


def _config() -> Any:
  config = session_config.as_it_is(1)
  config.session_inter_op_thread_pool.add(num_threads=1)
  config.isolate_session_state = True
  return config
