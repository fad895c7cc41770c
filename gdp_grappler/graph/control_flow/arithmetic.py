"""Computes ops on values that are known before the step.

Only ops that occur in counters and limits of loops are supported. All numbers
are float64. If a value varies between iterations, its mean is known, which need
not be an integer.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import dtypes
from tensorflow.python.framework import tensor_util

from gdp_grappler.graph import node_attributes

# Largest number of elements of a constant that is computed.
_MAX_ELEMENTS = 1024
# Linear ops, which are also correct for the mean of a value that varies.
LINEAR: Mapping[str, Callable[..., np.ndarray]] = {
    'Add': np.add, 'AddV2': np.add, 'Sub': np.subtract
}
# Ops that are computed only for values that do not vary.
_EXACT: Mapping[str, Callable[..., np.ndarray]] = {
    'Mul': np.multiply, 'Maximum': np.maximum, 'Minimum': np.minimum,
    'FloorDiv': np.floor_divide, 'FloorMod': np.mod, 'RealDiv': np.divide,
    'Less': np.less, 'LessEqual': np.less_equal, 'Greater': np.greater,
    'GreaterEqual': np.greater_equal, 'Equal': np.equal, 'NotEqual':
        np.not_equal, 'LogicalAnd': np.logical_and, 'LogicalOr': np.logical_or,
    'LogicalNot': np.logical_not, 'Neg': np.negative,
    'ExpandDims': lambda x, axis: np.expand_dims(x, int(axis)),
    'Reshape': lambda x, shape: np.reshape(x, shape.astype(int)),
    'ConcatV2': lambda *xs: np.concatenate(xs[:-1], int(xs[-1]))
}
_REDUCTIONS: Mapping[str, Callable[..., np.ndarray]] = {
    'Max': np.max, 'Min': np.min, 'Prod': np.prod, 'Sum': np.sum
}
# For each comparison of `a` and `b`: a sign, and whether the comparison fails
# for equal numbers. It holds while `sign * (a - b)` is negative.
COMPARISONS = {
    'Less': (1, True), 'LessEqual': (1, False), 'Greater': (-1, True),
    'GreaterEqual': (-1, False)
}
OPPOSITE = {
    'Less': 'GreaterEqual', 'LessEqual': 'Greater', 'Greater': 'LessEqual',
    'GreaterEqual': 'Less', 'Equal': 'NotEqual', 'NotEqual': 'Equal'
}


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
  """The value of a tensor.

  Attributes:
    array: Elements of the tensor; means of the elements if they vary.
    varies: Whether the elements differ between iterations of an outer loop.
  """

  array: np.ndarray
  varies: bool = False


def constant(node: node_def_pb2.NodeDef) -> Value | None:
  """Returns the value of a Const; None if it is large or not numeric."""
  tensor = node.attr['value'].tensor
  if math.prod(d.size for d in tensor.tensor_shape.dim) > _MAX_ELEMENTS:
    return None
  array = tensor_util.MakeNdarray(tensor)
  if array.dtype.kind not in 'iufb':
    return None
  return Value(array.astype(np.float64))


def merged(node: node_def_pb2.NodeDef,
           values: Sequence[Value | None]) -> Value | None:
  """Returns the value that a Merge after a condition may have.

  The branch with more work is assumed to run. If the value is the trip count of
  a loop in only one branch, this branch has the larger value. A boolean says
  nothing about work: it is unknown unless all branches have the same.

  Args:
    node: The Merge.
    values: Values of its inputs; None if unknown.
  """
  known = [v for v in values if v is not None and v.array.size == 1]
  numbers = {float(v.array.reshape(())) for v in known}
  is_test = node.attr['T'].type == dtypes.bool.as_datatype_enum
  if is_test and (len(known) < len(values) or len(numbers) > 1):
    return None
  return max(known, key=lambda v: float(v.array.reshape(())), default=None)


# By default numpy prints a warning, and goes on with infinity or NaN.
@np.errstate(divide='raise', over='raise', invalid='raise')
def apply(node: node_def_pb2.NodeDef, values: Sequence[Value]) -> Value | None:
  """Returns the output of an op for known inputs; None if there is no rule.

  Args:
    node: The op.
    values: Values of all its data inputs.

  Raises:
    ArithmeticError, IndexError, TypeError, ValueError: the op is malformed, or
      divides by 0.
  """
  kind = node.op
  arrays = [v.array for v in values]
  varies = any(v.varies for v in values)
  if kind in LINEAR:
    return Value(LINEAR[kind](*arrays), varies)
  if kind == 'Mul' and sum(v.varies for v in values) < 2:
    return Value(np.multiply(*arrays), varies)
  if kind == 'Cast':
    return Value(arrays[0] if varies else _cast(node, arrays[0]), varies)
  if varies:
    return None
  if kind in _EXACT:
    return Value(np.asarray(_EXACT[kind](*arrays)))
  if kind in _REDUCTIONS:
    axes = tuple(np.atleast_1d(arrays[1]).astype(int))
    keeps = node_attributes.of(node, 'keep_dims').b
    return Value(np.asarray(_REDUCTIONS[kind](arrays[0], axes, keepdims=keeps)))
  return _by_attributes(node, arrays)


def _by_attributes(node: node_def_pb2.NodeDef,
                   arrays: Sequence[np.ndarray]) -> Value | None:
  if node.op == 'Pack':
    return Value(np.stack(arrays, node_attributes.of(node, 'axis').i))
  if node.op == 'Squeeze':
    axes = tuple(node_attributes.of(node, 'squeeze_dims').list.i)
    return Value(np.squeeze(arrays[0], axes or None))
  if node.op == 'GatherV2' and not node_attributes.of(node, 'batch_dims').i:
    array, indices, axis = arrays
    return Value(np.take(array, indices.astype(int), int(axis)))
  if node.op == 'StridedSlice':
    return _strided_slice(node, *arrays)
  return None


def _cast(node: node_def_pb2.NodeDef, array: np.ndarray) -> np.ndarray:
  """Casts to booleans, or to integers by rounding towards zero."""
  wanted = dtypes.as_dtype(node.attr['DstT'].type)
  if wanted.is_bool:
    return (array != 0).astype(np.float64)
  return np.trunc(array) if wanted.is_integer else array


def _strided_slice(node: node_def_pb2.NodeDef, array: np.ndarray,
                   begin: np.ndarray, end: np.ndarray,
                   strides: np.ndarray) -> Value | None:
  """Returns an element or a slice of a vector, such as a shape."""
  masks = 'begin_mask', 'end_mask', 'ellipsis_mask', 'new_axis_mask'
  no_begin, no_end, ellipsis, new_axis, shrink = (
      node_attributes.of(node, mask).i for mask in (*masks, 'shrink_axis_mask'))
  if array.ndim != 1 or begin.size != 1 or ellipsis or new_axis:
    return None
  first = int(begin.item())
  if shrink:
    return Value(np.asarray(array[first]))
  return Value(array[slice(None if no_begin else first,
                           None if no_end else int(end.item()),
                           int(strides.item()))])


def crossing(kind: str, a: tuple[Value, Value], b: tuple[Value,
                                                         Value]) -> Value:
  """Returns for how many iterations a comparison of two linear values holds.

  Iterations are counted from the first one.

  Args:
    kind: An op of `COMPARISONS`, or 'NotEqual'.
    a: Left side: a scalar in the first iteration, and its increment.
    b: Right side, likewise.

  Returns:
    Number of iterations; infinity if the comparison always holds.
  """
  varies = any(v.varies for v in (*a, *b))
  offset, slope = (float((x.array - y.array).reshape(())) for x, y in zip(a, b))
  if kind == 'NotEqual':
    ends = slope and -offset / slope
    return Value(
        np.array(0. if not offset else ends if ends and ends > 0 and
                 (varies or ends == int(ends)) else math.inf), varies)
  sign, strict = COMPARISONS[kind]
  offset, slope = sign * offset, sign * slope
  if offset > 0 or strict and offset == 0:
    return Value(np.array(0.), varies)
  if slope <= 0:
    return Value(np.array(math.inf), varies)
  ends = -offset / slope
  if not varies:
    ends = math.ceil(ends) if strict else math.floor(ends) + 1
  elif not strict:
    ends += 1
  return Value(np.array(float(ends)), varies)
