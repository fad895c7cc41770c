"""Memory of the lists and stacks of tensors that a while loop fills.

If a gradient of a loop is computed, the loop pushes the tensors that the
backward pass needs on lists, or on stacks in TensorFlow 1. All of them exist at
the same time, until the loop of the gradient pops them. Shape inference gives a
list no size, because the size depends on the number of iterations.

A list holds references. Tensors that every iteration computes anew need memory
for each iteration. A tensor from outside of the loop is one buffer, however
often it is pushed. The value of a variable is the variable's own memory.

Several loops may begin with one empty list, but each has its own elements. So
the bytes belong to the op through which the list enters the loop.

`TensorListFromTensor` copies each row of a tensor by a kernel of its own. So
its list has the bytes of the tensor.
"""

from __future__ import annotations

import functools
from typing import Callable, Collection, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import frames as frames_lib
from gdp_grappler.graph.control_flow import values as values_lib

# Ops that add an element to a list or a stack, with the position of this input.
_ADDS = {
    'TensorListPushBack': 1, 'TensorListSetItem': 2,
    **dict.fromkeys(op_kinds.STACK_PUSHES, 1)
}
# Largest depth of lists in lists.
_MAX_DEPTH = 20
_BEGINNINGS = (op_kinds.NEW_LISTS | op_kinds.STACKS | op_kinds.ENTERS
               | {'_Arg'})


def list_bytes(nodes: Sequence[node_def_pb2.NodeDef],
               edges: Sequence[tuple[int, int, int]], frames: frames_lib.Frames,
               shared: Collection[int],
               bytes_of: Callable[[values_lib.Tensor], int]) -> dict[int, int]:
  """Returns bytes of lists that loops fill, by the op where a list begins.

  Ops that pass on a list are aliases of their first inputs. So the bytes of the
  first op stay in memory until the last op that pops.

  Args:
    nodes: [N], NodeDefs.
    edges: (producer, output index or -1, consumer).
    frames: Control flow of the nodes.
    shared: Ops that make empty lists for several loops.
    bytes_of: Function that returns the bytes of a tensor.
  """
  if frames.values is None:
    return {}
  adders = {i for i, node in enumerate(nodes) if node.op in _ADDS}
  inputs: dict[int, list[values_lib.Tensor]] = {}
  for source, output, target in edges:
    if target in adders and output >= 0:
      inputs.setdefault(target, []).append((source, output))
  creator = functools.partial(frames.values.creator, shared=shared)
  fills: dict[int, list[tuple[values_lib.Tensor, float]]] = {}
  for op in sorted(adders):
    made = creator(inputs[op][0]) if op in inputs else None
    if made is None or nodes[made[0]].op not in _BEGINNINGS:
      continue
    element = inputs[op][_ADDS[nodes[op].op]]
    source, _ = frames.values.source(element)
    if nodes[source].op in op_kinds.VARIABLE_VALUES:
      buffers = 0.
    else:
      buffers = min(frames.executions[op], max(frames.executions[source], 1))
    per_list = buffers / max(frames.executions[made[0]], 1)
    fills.setdefault(made[0], []).append((element, per_list))
  known: dict[int, float] = {}
  return {op: int(_filled(op, fills, creator, bytes_of, known)) for op in fills}


def copied(types: Sequence[str],
           edges: Sequence[tuple[int, int, int]]) -> dict[int, tuple[int, int]]:
  """Returns the tensors that ops copy row by row into a list, by op.

  Args:
    types: [N], types of ops.
    edges: (producer, output index or -1, consumer).
  """
  makers = {i for i, t in enumerate(types) if t == 'TensorListFromTensor'}
  result: dict[int, tuple[int, int]] = {}
  for source, output, target in edges if makers else ():
    if target in makers and output >= 0:
      result.setdefault(target, (source, output))
  return result


def _filled(op: int, fills: Mapping[int, list[tuple[tuple[int, int], float]]],
            creator: Callable[[values_lib.Tensor], values_lib.Tensor | None],
            bytes_of: Callable[[values_lib.Tensor], int],
            known: dict[int, float], depth: int = 0) -> float:
  """Returns the bytes of a list's elements, which may be lists themselves.

  Args:
    op: The op where the list begins.
    fills: Elements of each list, with their numbers.
    creator: Function that returns the op that made a list.
    bytes_of: Function that returns the bytes of a tensor.
    known: Results by op; changed in place.
    depth: Number of lists around the list.
  """
  if op in known:
    return known[op]
  known[op] = total = 0.  # Ends every cycle.
  for element, count in fills[op]:
    inner = creator(element)
    if inner is not None and inner[0] in fills and depth < _MAX_DEPTH:
      size = _filled(inner[0], fills, creator, bytes_of, known, depth + 1)
    else:
      size = bytes_of(element)
    total += size * count
  known[op] = total if np.isfinite(total) else 0.
  return known[op]
