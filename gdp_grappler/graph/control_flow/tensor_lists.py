"""Memory of the lists of tensors that a while loop fills.

A loop of which a gradient is taken pushes what the backward pass needs on
lists: all of it is there at once, until the loop of the gradient pops it. Shape
inference gives a list no size, because it depends on the number of iterations.

A list holds references. What every iteration pushes anew takes memory anew; a
value from outside of the loop is one buffer, however often it is pushed; and
the value of a variable is the variable's own memory.

Several loops may begin with one empty list. What each puts on it is its own:
the bytes belong to the op through which the list enters the loop.
"""

from __future__ import annotations

import functools
from typing import Callable, Collection, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import frames as frames_lib
from gdp_grappler.graph.control_flow import values as values_lib

# What adds an element to a list: which of its inputs is the element.
_ADDS = {'TensorListPushBack': 1, 'TensorListSetItem': 2}
_BEGINNINGS = op_kinds.NEW_LISTS | op_kinds.ENTERS | {'_Arg'}


def list_bytes(nodes: Sequence[node_def_pb2.NodeDef],
               edges: Sequence[tuple[int, int, int]], frames: frames_lib.Frames,
               shared: Collection[int],
               bytes_of: Callable[[values_lib.Tensor], int]) -> dict[int, int]:
  """Bytes of every list that a loop fills, by the op where it begins.

  The bytes belong to the op that makes the list: what hands a list on is an
  alias of its first input, so they stay until the last op that pops.

  Args:
    nodes: [N].
    edges: (producer, output index or -1, consumer).
    frames: Their control flow.
    shared: Ops that make empty lists for several loops.
    bytes_of: Bytes of any tensor.
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
  return {op: int(_filled(op, fills, creator, bytes_of, ())) for op in fills}


def _filled(op: int, fills: Mapping[int, list[tuple[tuple[int, int], float]]],
            creator: Callable[[values_lib.Tensor], values_lib.Tensor | None],
            bytes_of: Callable[[values_lib.Tensor],
                               int], around: tuple[int, ...]) -> float:
  """Bytes of all elements of a list; an element may be a list itself."""
  total = 0.
  for element, count in fills[op]:
    inner = creator(element)
    if inner is not None and inner[0] in fills and inner[0] not in around:
      size = _filled(inner[0], fills, creator, bytes_of, (*around, op))
    else:
      size = bytes_of(element)
    total += size * count
  return total if np.isfinite(total) else 0.
