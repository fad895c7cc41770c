"""Kernel launches and memory of recurrent networks that are a single op."""

from __future__ import annotations

import functools
import math
import re
from typing import Callable, Sequence

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import dtypes

from gdp_grappler.graph import node_table

_CUDNN = re.compile(r'CudnnRNN(Backprop)?(V[23])?')
_BLOCK = re.compile(r'BlockLSTM(Grad)?(V2)?')
_TIME_MAJOR = 'time_major'
# Gates of a unit, by the attribute `rnn_mode`; a plain unit has one.
_GATES = {'lstm': 4, 'gru': 3}


def by_name(nodes: Sequence[node_def_pb2.NodeDef], op_types: Sequence[str],
            shape_of: node_table.ShapeOf) -> dict[str, float]:
  """Returns `OpGraph.rounds_by_name` of a graph.

  Each time step needs the state of the one before, and each layer needs the
  output of the layer below. So their kernels run one after the other. (cuDNN
  overlaps layers as far as it can, but Keras makes one op per layer.) A
  gradient has two matrix products for each one of the forward pass.

  Args:
    nodes: [N], NodeDefs.
    op_types: [N], types of the nodes.
    shape_of: Function that returns shapes of outputs.
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
  """Returns the rounds of one op; 1 if its shapes are unknown.

  The first output is as long as the input, [time, examples, features]. The
  second output of cuDNN's ops, [layers, examples, units], is the state or its
  gradient. Without `time_major`, the first two dimensions of both are swapped.
  """
  first = 0 if _is_time_major(node) else 1
  sequence = shape_of(0)
  if sequence is None or len(sequence) < 3:
    return 1.
  products = 2 if 'Backprop' in node.op or 'Grad' in node.op else 1
  state = None if _BLOCK.fullmatch(node.op) else shape_of(1)
  layers = 1 if state is None or len(state) < 3 else state[first]
  return max(1., float(products * sequence[first] * layers))


def reserved_bytes(nodes: Sequence[node_def_pb2.NodeDef],
                   op_types: Sequence[str],
                   shape_of: node_table.ShapeOf) -> dict[int, int]:
  """Returns the bytes of the output `reserve_space` of cuDNN's ops, by op.

  In training, the op keeps for its gradient what it computed in each time step.
  Shape inference does not know how much, because only cuDNN tells, and only on
  a GPU. The result is an estimate: for each unit the values of its gates, and
  one number more.

  Args:
    nodes: [N], NodeDefs.
    op_types: [N], types of the nodes.
    shape_of: Function that returns shapes of outputs.
  """
  result = {}
  for op, kind in enumerate(op_types):
    if not _CUDNN.fullmatch(kind) or 'Backprop' in kind:
      continue
    node, sequence, state = nodes[op], shape_of(op, 0), shape_of(op, 1)
    is_training = 'is_training' not in node.attr or node.attr['is_training'].b
    if not is_training or sequence is None or state is None or (len(sequence)
                                                                < 3):
      continue
    steps = sequence[0 if _is_time_major(node) else 1]
    mode = node.attr['rnn_mode'].s.decode() if 'rnn_mode' in node.attr else (
        'lstm')
    numbers = _GATES.get(mode, 1) + 1
    size = dtypes.as_dtype(node.attr['T'].type).size
    result[op] = steps * math.prod(state) * numbers * size
  return result


def _is_time_major(node: node_def_pb2.NodeDef) -> bool:
  return _TIME_MAJOR not in node.attr or node.attr[_TIME_MAJOR].b
