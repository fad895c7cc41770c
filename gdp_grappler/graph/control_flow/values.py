"""Values of the few tensors that determine how often a loop runs.

A while loop of TensorFlow 2 that Grappler lowered, or one of TensorFlow 1,
tests a counter. The counter begins with a constant, each iteration adds a
constant, and the condition compares the counter with a limit. The limit is a
constant, comes from a shape, or is the last counter of another loop (the loop
of a gradient runs as often as that of the function). If the condition is a flag
that the body sets, the body compares the counter.

If a value differs between iterations of an outer loop, its mean is used. So the
mean trip count of `for j in range(i + 1)` is exact.
"""

from __future__ import annotations

import itertools
import math
from typing import Callable, Iterable, Iterator, Mapping, Sequence, TypeVar

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph.control_flow import arithmetic
from gdp_grappler.graph.control_flow import dataflow

_T = TypeVar('_T')

# A producer and the index of its output.
Tensor = dataflow.Tensor

# A scalar in the first iteration, and its increment per iteration.
_Line = tuple[arithmetic.Value, arithmetic.Value]

_Decider = Callable[[int], tuple[Tensor, bool] | None]

_MAX_DEPTH = dataflow.MAX_DEPTH
# Largest number of iterations that are counted one by one.
_MAX_COUNT = 1000


class Values(dataflow.Dataflow):
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
    super().__init__(nodes, inputs)
    self._shape_of = shape_of
    self._known: dict[Tensor, arithmetic.Value | None] = {
        tensor: arithmetic.Value(np.array(number, np.float64))
        for tensor, number in (numbers or {}).items()
    }
    self._trips: dict[int, arithmetic.Value | None] = {}
    self._flags: dict[tuple[int, bool], arithmetic.Value | None] = {}
    # Results of `_holds`. Without them, the time would be exponential.
    self._held: dict[tuple[Tensor, int, bool], arithmetic.Value | None] = {}
    self._loop_conds: Mapping[int, int] = {}
    self._frames: Sequence[int] = ()
    self._decider: _Decider = lambda merge: None

  def set_loops(self, frames: Sequence[int], loop_conds: Mapping[int, int],
                decider: _Decider) -> None:
    """Sets what the evaluator needs to know of loops and conditions.

    Args:
      frames: [N], frame of each op.
      loop_conds: LoopCond of each frame.
      decider: Function that returns the condition which decides the input of a
        Merge, and whether its first input comes from the true branch; None if
        there are not two such inputs.
    """
    self._frames = frames
    self._loop_conds = loop_conds
    self._decider = decider

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
      return (self._mean(op, depth) if self._next(op) else arithmetic.merged(
          self._nodes[op], [self.value(i, depth) for i in inputs]))
    if kind == 'TensorListPopBack' and output == 1:
      pushed = self._pushed(inputs[0])
      return pushed and self.value(pushed, depth)
    if kind in ('Shape', 'ShapeN', 'Size'):
      return self._shape(inputs[output], kind)
    if kind in ('TensorListLength', 'TensorArraySizeV3'):
      return self._length(inputs[0], depth)
    if kind in dataflow.SAME_VALUE:
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
      before = len(self._known)
      cond = self._loop_conds.get(frame)
      if cond is not None and self._inputs[cond]:
        try:
          found = self._holds(self._inputs[cond][0], frame, False, depth + 1)
        except (ArithmeticError, IndexError, TypeError, ValueError):
          found = None
        if found is not None and np.isfinite(found.array):
          self._trips[frame] = found
          # Values that depend on the trip count were unknown so far.
          for each in list(itertools.islice(self._known, before, None)):
            if self._known[each] is None:
              del self._known[each]
    return self._trips[frame]

  def _holds(self, tensor: Tensor, frame: int, negated: bool,
             depth: int) -> arithmetic.Value | None:
    """Returns for how many iterations a condition holds from the first one."""
    key = tensor, frame, negated
    if key not in self._held:
      self._held[key] = None  # Ends every cycle.
      self._held[key] = self._tested(tensor, frame, negated, depth)
    return self._held[key]

  def _tested(self, tensor: Tensor, frame: int, negated: bool,
              depth: int) -> arithmetic.Value | None:
    if depth > _MAX_DEPTH:
      return None
    op = tensor[0]
    kind, inputs = self._types[op], self._inputs[op]
    if kind in ('Identity', 'Switch'):
      return self._holds(inputs[0], frame, negated, depth + 1)
    if kind == 'LogicalNot':
      return self._holds(inputs[0], frame, not negated, depth + 1)
    is_and, tests = self._parts(op)
    if tests:
      known = _known(
          self._holds(test, frame, inverted != negated, depth + 1)
          for test, inverted in tests)
      if is_and != negated:
        # An unknown part, such as a flag of `break`, can only end the loop
        # earlier.
        return min(known, key=lambda v: v.array, default=None)
      # A part that is false may become true again.
      if len(known) < len(tests) or any(
          self._may_return(test, part)
          for (test, _), part in zip(tests, known)):
        return None
      return max(known, key=lambda v: v.array)
    if kind == 'Merge':
      return (self._flag(op, negated, depth + 1)
              if self._frames[op] == frame and self._next(op) else None)
    if negated:
      kind = arithmetic.OPPOSITE.get(kind, '')
    if kind in arithmetic.COMPARISONS or kind == 'NotEqual':
      sides = _known(self._linear(i, frame, depth + 1) for i in inputs)
      if len(sides) < len(inputs):
        return self._counted(op, frame, negated, depth + 1)
      return arithmetic.crossing(kind, *sides)
    constant = self.value(tensor, depth + 1)
    if constant is None or constant.varies:
      return None
    return arithmetic.Value(
        np.array(math.inf if bool(constant.array) != negated else 0.))

  def _parts(self, op: int) -> tuple[bool, list[tuple[Tensor, bool]]]:
    """Returns whether an op is an `and`, not an `or`, and its tests.

    Each test comes with a flag: whether it is negated. An op that is neither an
    `and` nor an `or` has no tests.

    AutoGraph makes `a and b` a condition whose false branch returns `a`, or
    False in loops with `break`. The true branch of `a or b` returns `a`, and
    that of `if a: b = True` returns True.
    """
    kind, inputs = self._types[op], self._inputs[op]
    if kind in ('LogicalAnd', 'LogicalOr'):
      return kind == 'LogicalAnd', [(tensor, False) for tensor in inputs]
    decided = self._decider(op) if kind == 'Merge' else None
    if decided is None:
      return False, []
    test, branch = decided
    for one, other, chosen in ((inputs[0], inputs[1], branch),
                               (inputs[1], inputs[0], not branch)):
      constant = chosen if self.source(one) == test else self._constant(one)
      if constant is not None:
        return not constant, [(test, constant != chosen), (other, False)]
    return False, []

  def _may_return(self, test: Tensor, trips: arithmetic.Value) -> bool:
    """Whether a part of an `or` may be true after it was false."""
    if self._types[self.source(test)[0]] in ('Equal', 'NotEqual'):
      return True
    return not trips.array and self._constant(test) is None

  def _constant(self, tensor: Tensor) -> float | None:
    """Like `scalar`, without assumptions about conditions."""
    source = self.source(tensor)
    return self.scalar(source) if self._types[source[0]] == 'Const' else None

  def _flag(self, merge: int, negated: bool,
            depth: int) -> arithmetic.Value | None:
    """Returns for how many iterations a boolean loop variable is true."""
    key = merge, negated
    if key not in self._flags:
      self._flags[key] = None  # Ends every cycle.
      start = self._constant(self._inputs[merge][0])
      update = self._next(merge)
      if start is not None and bool(start) == negated:
        self._flags[key] = arithmetic.Value(np.array(0.))
      elif update:
        rest = self._holds(update, self._frames[merge], negated, depth)
        self._flags[key] = rest and arithmetic.Value(rest.array + 1,
                                                     rest.varies)
    return self._flags[key]

  def _counted(self, op: int, frame: int, negated: bool,
               depth: int) -> arithmetic.Value | None:
    """Counts the iterations of a comparison of variables as in `i *= 2`."""
    sides = zip(*(self._course(i, frame, depth) for i in self._inputs[op]))
    try:
      for trips, values in enumerate(itertools.islice(sides, _MAX_COUNT)):
        holds = arithmetic.apply(self._nodes[op], values)
        if holds is None or bool(holds.array) == negated:
          return holds and arithmetic.Value(np.array(float(trips)))
    except ArithmeticError:
      pass  # A number has become too large.
    return None

  def _course(self, tensor: Tensor, frame: int,
              depth: int) -> Iterator[arithmetic.Value]:
    """Yields a scalar in each iteration; nothing if it is unknown."""
    merge = self._source_in_iteration(tensor)[0]
    update = self._next(merge) if self._frames[merge] == frame else None
    if update is None or self._is_invariant(merge):
      value = self.value(tensor, depth)
      yield from () if value is None else itertools.repeat(value)
      return
    op, _ = self._source_in_iteration(update)
    others = [
        None if self._source_in_iteration(i)[0] == merge else i
        for i in self._inputs[op]
    ]
    value = self.value(self._inputs[merge][0], depth)
    while value is not None:
      yield value
      operands = _known(
          self.value(other, depth) if other else value for other in others)
      value = arithmetic.apply(
          self._nodes[op], operands) if len(operands) == len(others) else None

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
