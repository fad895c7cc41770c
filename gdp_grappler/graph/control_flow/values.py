"""Values of the few tensors that determine how often a loop runs.

A while loop of TensorFlow 2 that Grappler lowered, or one of TensorFlow 1,
tests a counter. The counter begins with a constant, each iteration adds a
constant, and the condition compares the counter with a limit. The limit is a
constant, comes from a shape, or is the last counter of another loop (the loop
of a gradient runs as often as that of the function).

If a value differs between iterations of an outer loop, its mean is used. So the
mean trip count of `for j in range(i + 1)` is exact.
"""

from __future__ import annotations

import math
from typing import Callable, Collection, Iterable, Mapping, Sequence, TypeVar

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import arithmetic

_T = TypeVar('_T')

# A producer and the index of its output.
Tensor = tuple[int, int]

# A scalar in the first iteration, and its increment per iteration.
_Line = tuple[arithmetic.Value, arithmetic.Value]

# Largest number of ops between a value and its source.
_MAX_DEPTH = 200
# TensorFlow wraps variants in optionals.
_SAME_VALUE = op_kinds.SAME_VALUE | op_kinds.OPTIONALS
_SAME_BUFFER = (op_kinds.HANDED_ON | op_kinds.VIEWS
                | op_kinds.OPTIONALS) - {'Exit'}
_MAKERS = op_kinds.LIST_MAKERS | op_kinds.STACKS | {'TensorArrayV3', '_Arg'}
_SAME_LIST = (_SAME_VALUE | op_kinds.LIST_CHANGES
              | {'Merge', 'TensorListPopBack'})


class Values:
  """Evaluates tensors of one graph on demand."""

  def __init__(self, nodes: Sequence[node_def_pb2.NodeDef],
               inputs: Sequence[Sequence[Tensor]],
               shape_of: Callable[[Tensor], Sequence[int] | None],
               numbers: Mapping[Tensor, float] | None = None) -> None:
    """Initializes Values.

    Args:
      nodes: [N], NodeDefs.
      inputs: [N], data inputs of each op.
      shape_of: Function that returns the shape of a tensor; None if unknown.
      numbers: Results of calls that are known numbers.
    """
    self._nodes = nodes
    self._inputs = inputs
    self._shape_of = shape_of
    self._types = [node.op.removeprefix('Ref') for node in nodes]
    self._known: dict[Tensor, arithmetic.Value | None] = {
        tensor: arithmetic.Value(np.array(number, np.float64))
        for tensor, number in (numbers or {}).items()
    }
    self._trips: dict[int, arithmetic.Value | None] = {}
    self._loop_conds: Mapping[int, int] = {}
    self._frames: Sequence[int] = ()

  def set_loops(self, frames: Sequence[int], loop_conds: Mapping[int,
                                                                 int]) -> None:
    """Sets the frame of each op [N] and the LoopCond of each frame."""
    self._frames = frames
    self._loop_conds = loop_conds

  def scalar(self, tensor: Tensor) -> float | None:
    """Returns a tensor's only element; None if unknown or if it varies."""
    value = self.value(tensor)
    if value is None or value.varies or value.array.size != 1:
      return None
    return float(value.array.reshape(()))

  def trips(self, frame: int) -> float | None:
    """Returns the iterations of a loop per entry; None if unknown."""
    value = self._loop_trips(frame, 0)
    return None if value is None else float(value.array)

  def source(self, tensor: Tensor) -> Tensor:
    """Returns the tensor whose buffer a tensor passes on."""
    for _ in range(_MAX_DEPTH):
      op, _ = tensor
      kind = self._types[op]
      if kind in _SAME_BUFFER and self._inputs[op]:
        tensor = self._inputs[op][0]
      elif kind == 'Merge' and self._is_invariant(op):
        tensor = self._inputs[op][0]
      elif kind == 'TensorListPopBack' and tensor[1] == 1:
        pushed = self._pushed(self._inputs[op][0])
        if pushed is None:
          return tensor
        tensor = pushed
      else:
        return tensor
    return tensor

  def value(self, tensor: Tensor, depth: int = 0) -> arithmetic.Value | None:
    """Returns the value of a tensor; None if unknown."""
    if tensor not in self._known:
      if depth > _MAX_DEPTH:
        return None
      self._known[tensor] = None  # Ends every cycle.
      try:
        self._known[tensor] = self._evaluate(tensor, depth + 1)
      except (ArithmeticError, IndexError, TypeError, ValueError):
        pass  # Malformed, so unknown.
    return self._known[tensor]

  def _evaluate(self, tensor: Tensor, depth: int) -> arithmetic.Value | None:
    op, output = tensor
    kind, inputs = self._types[op], self._inputs[op]
    if kind == 'Const':
      return arithmetic.constant(self._nodes[op])
    if kind == 'Exit':
      return self._last(inputs[0], depth)
    if kind == 'Merge':
      return (self._mean(op, depth) if self._next(op) else self._largest_value(
          [self.value(i, depth) for i in inputs]))
    if kind == 'TensorListPopBack' and output == 1:
      pushed = self._pushed(inputs[0])
      return pushed and self.value(pushed, depth)
    if kind in ('Shape', 'ShapeN', 'Size'):
      return self._shape(inputs[output], kind)
    if kind in ('TensorListLength', 'TensorArraySizeV3'):
      return self._length(inputs[0], depth)
    if kind in _SAME_VALUE:
      return None if output and kind == 'OptionalGetValue' else self.value(
          inputs[0], depth)
    values: list[arithmetic.Value] = []
    # Comprehensions would take three more frames of Python's stack per level.
    for each in inputs:
      value = self.value(each, depth)
      if value is None:
        return None
      values.append(value)
    return arithmetic.apply(self._nodes[op], values) if values else None

  def _shape(self, tensor: Tensor, kind: str) -> arithmetic.Value | None:
    shape = self._shape_of(tensor)
    if shape is None:
      return None
    return arithmetic.Value(
        np.array(math.prod(shape) if kind == 'Size' else shape, np.float64))

  # Loops.

  def _loop_trips(self, frame: int, depth: int) -> arithmetic.Value | None:
    if frame not in self._trips:
      self._trips[frame] = None
      cond = self._loop_conds.get(frame)
      if cond is not None and self._inputs[cond]:
        try:
          found = self._holds(self._inputs[cond][0], frame, False, depth + 1)
        except (ArithmeticError, IndexError, TypeError, ValueError):
          found = None
        if found is not None and np.isfinite(found.array):
          self._trips[frame] = found
    return self._trips[frame]

  def _holds(self, tensor: Tensor, frame: int, negated: bool,
             depth: int) -> arithmetic.Value | None:
    """Returns for how many iterations a condition holds from the first one."""
    if depth > _MAX_DEPTH:
      return None
    op = tensor[0]
    kind, inputs = self._types[op], self._inputs[op]
    if kind == 'Identity':
      return self._holds(inputs[0], frame, negated, depth + 1)
    if kind == 'LogicalNot':
      return self._holds(inputs[0], frame, not negated, depth + 1)
    if kind in ('LogicalAnd', 'LogicalOr'):
      known = _known(self._holds(i, frame, negated, depth + 1) for i in inputs)
      if (kind == 'LogicalAnd') != negated:
        # An unknown part, such as a flag of `break`, can only end the loop
        # earlier.
        return min(known, key=lambda v: v.array, default=None)
      return (None if len(known) < len(inputs) else max(known,
                                                        key=lambda v: v.array))
    if kind == 'Merge' and not negated and not self._next(op):
      gate = self._gate(op)
      return gate and self._holds(gate, frame, False, depth + 1)
    if negated:
      kind = arithmetic.OPPOSITE.get(kind)
    if kind in arithmetic.COMPARISONS or kind == 'NotEqual':
      sides = _known(self._linear(i, frame, depth + 1) for i in inputs)
      return None if len(sides) < len(inputs) else arithmetic.crossing(
          kind, *sides)
    constant = self.value(tensor, depth + 1)
    if constant is None or constant.varies or self._types[op] == 'Merge':
      return None
    return arithmetic.Value(
        np.array(math.inf if bool(constant.array) != negated else 0.))

  def _gate(self, merge: int) -> Tensor | None:
    """Returns the test of `test and other` in AutoGraph's loops with `break`.

    AutoGraph makes the `and` a condition, whose false branch returns the
    constant False.
    """
    inputs = self._inputs[merge]
    if len(inputs) != 2 or self.scalar(inputs[0]) != 0 and (self.scalar(
        inputs[1]) != 0):
      return None
    for tensor in inputs:
      while (self._types[tensor[0]] in ('Identity', 'LogicalNot') and
             self._inputs[tensor[0]]):
        tensor = self._inputs[tensor[0]][0]
      if self._types[tensor[0]] == 'Switch' and tensor[1] == 1:
        return self._inputs[tensor[0]][1]
    return None

  def _linear(self, tensor: Tensor, frame: int, depth: int) -> _Line | None:
    """Returns a scalar's value in the first iteration and its increment."""
    if depth > _MAX_DEPTH:
      return None
    op = tensor[0]
    kind, inputs = self._types[op], self._inputs[op]
    if kind == 'Merge' and self._frames[op] == frame:
      start, step = self.value(inputs[0], depth), self._step(op, depth)
      return None if start is None or step is None else (start, step)
    if kind in ('Identity', 'Cast', 'Switch'):
      return self._linear(inputs[0], frame, depth + 1)
    if kind in arithmetic.LINEAR:
      sides = _known(self._linear(i, frame, depth + 1) for i in inputs)
      if len(sides) < len(inputs):
        return None
      start, step = (
          arithmetic.apply(self._nodes[op], part) for part in zip(*sides))
      return None if start is None or step is None else (start, step)
    value = self.value(tensor, depth + 1)
    return None if value is None else (value, arithmetic.Value(np.array(0.)))

  def _step(self, merge: int, depth: int) -> arithmetic.Value | None:
    """Returns the increment of a loop variable per iteration."""
    if self._is_invariant(merge):
      return arithmetic.Value(np.array(0.))
    update = self._next(merge)
    update = update and self._source_in_iteration(update)
    if update is None or self._types[update[0]] not in arithmetic.LINEAR:
      return None
    a, b = self._inputs[update[0]]
    kind = self._types[update[0]]
    if self._source_in_iteration(a)[0] == merge:
      step = self.value(b, depth)
      return step and arithmetic.Value(
          -step.array if kind == 'Sub' else step.array, step.varies)
    if self._source_in_iteration(b)[0] == merge and kind != 'Sub':
      return self.value(a, depth)
    return None

  def _mean(self, merge: int, depth: int) -> arithmetic.Value | None:
    """Returns the mean of a loop variable over the iterations."""
    return self._at(
        merge, depth, lambda trips: arithmetic.Value(
            np.array(max(float(trips.array) - 1, 0) / 2), varies=True))

  def _last(self, tensor: Tensor, depth: int) -> arithmetic.Value | None:
    """Returns a loop variable after the loop."""
    merge = self._source_in_iteration(tensor)[0]
    if self._types[merge] != 'Merge':
      return None
    return self._at(merge, depth, lambda trips: trips)

  def _at(
      self, merge: int, depth: int, when: Callable[[arithmetic.Value],
                                                   arithmetic.Value]
  ) -> arithmetic.Value | None:
    """Returns a loop variable after `when(trips)` iterations."""
    linear = self._linear((merge, 0), self._frames[merge], depth)
    if linear is None:
      return None
    start, step = linear
    if not step.array.any():
      return start
    trips = self._loop_trips(self._frames[merge], depth)
    if trips is None:
      return None
    passed = when(trips)
    return arithmetic.Value(start.array + step.array * passed.array,
                            start.varies or step.varies or passed.varies)

  def _largest_value(
      self,
      values: Sequence[arithmetic.Value | None]) -> arithmetic.Value | None:
    """Returns the largest value that a Merge after a condition may have.

    The branch with more work is assumed to run. If the value is the trip count
    of a loop in only one branch, this branch has the larger value.
    """
    known = [v for v in values if v is not None and v.array.size == 1]
    return max(known, key=lambda v: float(v.array.reshape(())), default=None)

  def _source_in_iteration(self, tensor: Tensor) -> Tensor:
    """Skips ops that pass a tensor on within one iteration."""
    for _ in range(_MAX_DEPTH):
      if self._types[tensor[0]] not in ('Identity', 'Switch', 'Snapshot'):
        break
      tensor = self._inputs[tensor[0]][0]
    return tensor

  def _next(self, merge: int) -> Tensor | None:
    """Returns the next value of a loop variable; None for other Merges."""
    for op, _ in self._inputs[merge]:
      if self._types[op] == 'NextIteration' and self._inputs[op]:
        return self._inputs[op][0]
    return None

  def _is_invariant(self, merge: int) -> bool:
    update = self._next(merge)
    return update is not None and self._source_in_iteration(update)[0] == merge

  # Lists of tensors.

  def _pushed(self, handle: Tensor) -> Tensor | None:
    """Returns the tensor that a loop's body pushes on a list."""
    for _ in range(_MAX_DEPTH):
      op = handle[0]
      if self._types[op] == 'TensorListPushBack':
        return self._inputs[op][1]
      if self._types[op] == 'Merge':
        update = self._next(op)
        update = update and self._source_in_iteration(update)
        if update and self._types[update[0]] == 'TensorListPushBack':
          return self._inputs[update[0]][1]
      elif self._types[op] not in _SAME_VALUE:
        return None
      handle = self._inputs[op][0]
    return None

  def creator(self, handle: Tensor,
              shared: Collection[int] = ()) -> Tensor | None:
    """Returns the op that made a list, an array or a stack; None if unknown.

    If a list is an argument of the function, the result is the argument. If an
    op of `shared` made the list, the result is the reader of this op.
    """
    for _ in range(_MAX_DEPTH):
      kind = self._types[handle[0]]
      if kind in _MAKERS:
        return handle
      if kind not in _SAME_LIST:
        return None
      if not self._inputs[handle[0]]:
        return None
      taken = self._inputs[handle[0]][0]
      if taken[0] in shared:
        return handle
      handle = taken
    return None

  def _length(self, handle: Tensor, depth: int) -> arithmetic.Value | None:
    creator = self.creator(handle)
    if creator is None:
      return None
    kind, inputs = self._types[creator[0]], self._inputs[creator[0]]
    if kind == 'TensorListReserve':
      return self.value(inputs[1], depth)
    if kind == 'TensorArrayV3':
      return self.value(inputs[0], depth)
    if kind == 'TensorListFromTensor':
      shape = self._shape_of(inputs[0])
      return arithmetic.Value(np.array(float(shape[0]))) if shape else None
    return None


def _known(found: Iterable[_T | None]) -> list[_T]:
  """Returns the items that are not None."""
  return [item for item in found if item is not None]
