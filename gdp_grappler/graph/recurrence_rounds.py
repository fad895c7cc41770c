"""How often recurrent networks that are one op launch their kernels."""

from __future__ import annotations

import functools
import re
from typing import Callable, Sequence

from tensorflow.core.framework import node_def_pb2

# An op and one of its outputs -> dimensions; None if their number is unknown.
ShapeOf = Callable[[int, int], Sequence[int] | None]

_CUDNN = re.compile(r'CudnnRNN(Backprop)?(V[23])?')
_BLOCK = re.compile(r'BlockLSTM(Grad)?(V2)?')
_TIME_MAJOR = 'time_major'


def by_name(nodes: Sequence[node_def_pb2.NodeDef], op_types: Sequence[str],
            shape_of: ShapeOf) -> dict[str, float]:
  """As of `OpGraph.rounds_by_name`.

  A time step needs the state that the one before has left, and a layer what the
  one below has computed. (cuDNN runs layers side by side as far as it can;
  Keras makes an op of each.) A gradient has two products where there was one.

  Args:
    nodes: [N]
    op_types: [N]
    shape_of: Of the outputs.
  """
  kinds = {
      t for t in set(op_types) if _CUDNN.fullmatch(t) or _BLOCK.fullmatch(t)
  }
  if not kinds:
    return {}
  return {
      nodes[op].name: _rounds(nodes[op], functools.partial(shape_of, op))
      for op, kind in enumerate(op_types) if kind in kinds
  }


def _rounds(node: node_def_pb2.NodeDef,
            shape_of: Callable[[int], Sequence[int] | None]) -> float:
  """Of one op; 1 if its shapes are unknown.

  The first output is as long as the input, [time, examples, features]; the
  second of cuDNN's, [layers, examples, units], is the state or its gradient.
  The first two dimensions of both change places without `time_major`.
  """
  first = 0 if _is_time_major(node) else 1
  sequence = shape_of(0)
  if sequence is None or len(sequence) < 3:
    return 1.
  products = 2 if 'Backprop' in node.op or 'Grad' in node.op else 1
  state = None if _BLOCK.fullmatch(node.op) else shape_of(1)
  layers = 1 if state is None or len(state) < 3 else state[first]
  return max(1., float(products * sequence[first] * layers))


def _is_time_major(node: node_def_pb2.NodeDef) -> bool:
  return _TIME_MAJOR not in node.attr or node.attr[_TIME_MAJOR].b
