"""Seconds of the distinct ops of a graph, one at a time.

The module serves cards whose driver does not report kernels (no CUPTI). Ops of
one type with equal attributes and equal types and shapes of inputs (or of the
variables that are inputs) and outputs count as one op. The device first
computes matrix products that take longer than the launches, and then copies of
the op (`kernel_times` explains the method). Before the products it runs the op
once, so that inputs from the host are there. Otherwise they would arrive after
the products. Inputs are synthetic, except small integers such as axes and
shapes, which come from the graph.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import Any, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from gdp_grappler import deadlines
from gdp_grappler.cluster import device_figures
from gdp_grappler.evaluation.calibrating import inputs as inputs_lib
from gdp_grappler.evaluation.calibrating import kernel_times
from gdp_grappler.evaluation.measuring import session_config
from gdp_grappler.graph import op_kinds

# Integers with at most this many elements are fetched from the graph.
_MOST_ELEMENTS = 256
# Bytes of inputs that are allocated at a time.
_CHUNK_BYTES = 1 << 30
# Ops that are timed in one graph.
_MOST_OF_A_CHUNK = 40
_COPIES = 16  # Copies of an op that run in a row.
_LEAST_S = 1e-8  # Least seconds of an op that launches a kernel.
_ROUNDS = 3  # Timed runs of each step, of which the shortest counts.
# Values of tensors, by name.
_Values = Mapping[str, np.ndarray]


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


def seconds(session: Any, names: Sequence[str], device: str,
            deadline: deadlines.Deadline) -> dict[str, float]:
  """Seconds of each node that could be timed, without the gap between kernels.

  Args:
    session: Session whose graph is initialized and placed.
    names: Nodes to be timed, the most important first.
    device: Full name of the nodes' device.
    deadline: Deadline; nodes that are not timed by then have no result.
  """
  kinds = _distinct(session.graph, names)
  known = _small_values(session, kinds)
  kinds = [kind for kind in kinds if _can_be_made(kind, known)]
  products = _products_ahead(device, deadline)
  result: dict[str, float] = {}
  for chunk in _chunks(kinds):
    if deadline.passed:
      break
    for kind, found in zip(chunk,
                           _timed(chunk, known, device, products, deadline)):
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
  key: list[Any] = [
      (t.dtype.name, str(t.shape), _variable(t)) for t in op.inputs
  ]
  key += [str(t.shape) for t in op.outputs]
  if not all(t.shape.is_fully_defined() for t in op.outputs):
    key += [t.name for t in op.inputs if _is_small_integer(t)]
  return _plain(node).SerializeToString(deterministic=True) + repr(key).encode()


def _plain(node: Any) -> Any:
  """A NodeDef with the type and the public attributes of a node alone."""
  result = type(node)(op=node.op)
  for name, value in node.attr.items():
    if not name.startswith('_'):
      result.attr[name].CopyFrom(value)
  return result


def _small_values(session: Any, kinds: Sequence[_Distinct]) -> _Values:
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


def _can_be_made(kind: _Distinct, known: _Values) -> bool:
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


def _timed(chunk: Sequence[_Distinct], known: _Values, device: str,
           products: int, deadline: deadlines.Deadline) -> list[float | None]:
  """Seconds of each distinct op; None for an op that could not be timed."""
  with tf.Graph().as_default():
    makers, make = _Makers(known), inputs_lib.Inputs(True)
    with tf.device(device):
      steps = [
          _step(kind, f'gdp_{number}', makers, make, products)
          for number, kind in enumerate(chunk)
      ]
    with tf.compat.v1.Session(config=_config()) as session:
      try:
        session.run(tf.compat.v1.global_variables_initializer())
      except tf.errors.OpError:  # For example, the inputs exceed the memory.
        return [None] * len(chunk)
      return [
          None if deadline.passed else _difference_s(session, busy, copies)
          for busy, copies in steps
      ]


def _step(kind: _Distinct, prefix: str, makers: _Makers,
          make: inputs_lib.Inputs,
          products: int) -> tuple[list[Any], list[Any]]:
  """The last of the products, and the copies of an op, which wait for it."""
  given = [makers.make(t, n) for n, t in enumerate(kind.inputs)]
  first = _copied(kind, f'{prefix}_first', given, 1)
  make.begin()
  busy = kernel_times.products(make, products, first)
  return [busy.op], _copied(kind, prefix, given, _COPIES, busy)


def _difference_s(session: Any, before: Sequence[Any],
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
  if difference_s <= 0:
    return None
  # The simulator adds the gap before a kernel itself.
  gap_s = device_figures.CARD_LAUNCH['gap_s']
  return max(difference_s / len(copies) - gap_s, _LEAST_S)


def _copied(kind: _Distinct, prefix: str, given: Sequence[Any], count: int,
            busy: Any | None = None) -> list[Any]:
  """Copies of an op on synthetic inputs, which wait for the tensor `busy`."""
  fed = {f'in_{i}:0': tensor for i, tensor in enumerate(given)}
  if busy is not None:
    fed['^busy'] = busy
  graph_def = tf.compat.v1.GraphDef(
      versions=tf.compat.v1.get_default_graph().graph_def_versions)
  for copy in range(count):
    node = graph_def.node.add()
    node.CopyFrom(_plain(kind.node))
    node.name = f'{prefix}_{copy}'
    node.input.extend(fed)
  return tf.graph_util.import_graph_def(
      graph_def, name='', input_map=fed,
      return_elements=[node.name for node in graph_def.node])


class _Makers:
  """Makes synthetic inputs; ops share inputs of one type and shape."""

  def __init__(self, known: _Values) -> None:
    """Begins without inputs.

    Args:
      known: Values of tensors by name, which are used as they are.
    """
    self._known = known
    self._made: dict[tuple[Any, ...], Any] = {}

  def make(self, tensor: Any, ordinal: int) -> Any:
    """A tensor with type and shape of a tensor of another graph.

    Inputs of one op have different ordinals, so that they are not shared.
    """
    if tensor.name in self._known:
      with tf.device('/device:CPU:0'):
        return tf.constant(self._known[tensor.name], tensor.dtype)
    variable = _variable(tensor) if (tensor.dtype.base_dtype
                                     == tf.resource) else None
    dtype, shape = variable or (tensor.dtype.base_dtype, tensor.shape)
    dims = tf.TensorShape(shape).as_list()
    key = (tf.as_dtype(dtype), *dims, ordinal)
    if key not in self._made:
      self._made[key] = self._new(tf.as_dtype(dtype), dims)
    made = self._made[key]
    return made.handle if variable else self._value(made, tensor.dtype)

  def _new(self, dtype: Any, dims: list[int]) -> Any:
    kept = dtype if dtype.is_floating else tf.int64
    return tf.compat.v1.Variable(lambda: tf.ones(dims, kept), use_resource=True,
                                 trainable=False)

  def _value(self, variable: Any, dtype: Any) -> Any:
    """The variable's value, cast from int64 if integers are wanted.

    Integers are kept as int64, because GPUs have kernels for such variables.
    """
    value = variable.read_value()
    dtype = dtype.base_dtype
    return value if value.dtype == dtype else tf.cast(value, dtype)


def _products_ahead(device: str, deadline: deadlines.Deadline) -> int:
  """Number of products that take longer than the launches of all copies."""
  with tf.Graph().as_default(), tf.device(device):
    ends = kernel_times.probes(inputs_lib.Inputs(True))
    with tf.compat.v1.Session(config=_config()) as session:
      session.run(tf.compat.v1.global_variables_initializer())
      return kernel_times.long_enough(session, ends, deadline)


def _config() -> Any:
  config = session_config.as_it_is(1)
  config.session_inter_op_thread_pool.add(num_threads=1)
  config.isolate_session_state = True
  return config
