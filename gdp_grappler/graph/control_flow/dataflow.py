"""Where the tensors of a graph come from.

Many ops only pass a tensor on. In a loop that Grappler lowered, or a loop of
TensorFlow 1, a Merge outputs a loop variable. It gets the next value of the
variable from a NextIteration.
"""

from __future__ import annotations

from typing import Collection, Sequence

from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import op_kinds

# A producer and the index of its output.
Tensor = tuple[int, int]

# Largest number of ops between a tensor and its source.
MAX_DEPTH = 200
# TensorFlow wraps variants in optionals.
SAME_VALUE = op_kinds.SAME_VALUE | op_kinds.OPTIONALS
_SAME_BUFFER = (op_kinds.HANDED_ON | op_kinds.VIEWS
                | op_kinds.OPTIONALS) - {'Exit'}
_MAKERS = op_kinds.LIST_MAKERS | op_kinds.STACKS | {'TensorArrayV3', '_Arg'}
_SAME_LIST = (SAME_VALUE | op_kinds.LIST_CHANGES
              | {'Merge', 'TensorListPopBack'})


class Dataflow:
  """Finds the sources of tensors in one graph."""

  def __init__(self, nodes: Sequence[node_def_pb2.NodeDef],
               inputs: Sequence[Sequence[Tensor]]) -> None:
    """Initializes Dataflow.

    Args:
      nodes: [N], NodeDefs.
      inputs: [N], data inputs of each op.
    """
    self._nodes = nodes
    self._inputs = inputs
    self._types = [node.op.removeprefix('Ref') for node in nodes]

  def source(self, tensor: Tensor) -> Tensor:
    """Returns the tensor whose buffer a tensor passes on."""
    for _ in range(MAX_DEPTH):
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

  def creator(self, handle: Tensor,
              shared: Collection[int] = ()) -> Tensor | None:
    """Returns the op that made a list, an array or a stack; None if unknown.

    If a list is an argument of the function, the result is the argument. If an
    op of `shared` made the list, the result is the reader of this op.
    """
    for _ in range(MAX_DEPTH):
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

  def _next(self, merge: int) -> Tensor | None:
    """Returns the next value of a loop variable; None for other Merges."""
    for op, _ in self._inputs[merge]:
      if self._types[op] == 'NextIteration' and self._inputs[op]:
        return self._inputs[op][0]
    return None

  def _is_invariant(self, merge: int) -> bool:
    update = self._next(merge)
    return update is not None and self._source_in_iteration(update)[0] == merge

  def _source_in_iteration(self, tensor: Tensor) -> Tensor:
    """Skips ops that pass a tensor on within one iteration."""
    for _ in range(MAX_DEPTH):
      if self._types[tensor[0]] not in ('Identity', 'Switch', 'Snapshot'):
        break
      tensor = self._inputs[tensor[0]][0]
    return tensor

  def _pushed(self, handle: Tensor) -> Tensor | None:
    """Returns the tensor that a loop's body pushes on a list."""
    for _ in range(MAX_DEPTH):
      op = handle[0]
      if self._types[op] == 'TensorListPushBack':
        return self._inputs[op][1]
      if self._types[op] == 'Merge':
        update = self._next(op)
        update = update and self._source_in_iteration(update)
        if update and self._types[update[0]] == 'TensorListPushBack':
          return self._inputs[update[0]][1]
      elif self._types[op] not in SAME_VALUE:
        return None
      handle = self._inputs[op][0]
    return None
