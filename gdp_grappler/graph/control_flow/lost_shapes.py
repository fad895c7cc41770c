"""Nodes that tell shapes which Grappler's shape inference would lose.

Shape inference does not know which shapes the elements of a list have. So it
does not know the shapes of what the loop of a gradient pops, nor of anything
that is computed from them. But the op that made the list has the shape of its
elements as an input. Nor does shape inference know what `VariableShape`
returns.
"""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import tensor_util

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import values as values_lib

_POPS = frozenset(('TensorListPopBack',))
_SHAPES = frozenset(('VariableShape',))
# Ops that make lists, with the position of the input that is a shape.
_ELEMENT_SHAPES = {
    'EmptyTensorList': 0, 'TensorListReserve': 0, 'TensorListFromTensor': 1
}
_ELEMENT_TYPE = 'element_dtype'

# Type and shape of the elements of a list.
_Elements = tuple[int, tensor_shape_pb2.TensorShapeProto]


def substitutes(table: node_table.NodeTable) -> dict[int, node_def_pb2.NodeDef]:
  """Returns nodes that shape inference should get instead of others, by op.

  Each has the outputs of the node that it replaces.
  """
  if not table.types & (_POPS | _SHAPES):
    return {}
  nodes = table.nodes
  inputs: list[list[values_lib.Tensor]] = [[] for _ in nodes]
  for source, output, target in table.edges:
    if output >= 0:
      inputs[target].append((source, output))
  values = values_lib.Values(nodes, inputs, lambda _: None)

  def popped(op: int) -> node_def_pb2.NodeDef | None:
    made = values.creator(inputs[op][0])
    if made is None:
      return None
    maker, _ = made

    def array(place: int) -> np.ndarray | None:
      if place >= len(inputs[maker]):
        return None  # Shape inference rejects the graph.
      value = values.value(inputs[maker][place])
      return None if value is None else value.array

    return _popped(nodes[op], elements(nodes[maker], array))

  result = {}
  for op, node in enumerate(nodes):
    if not inputs[op]:
      continue
    found = None
    if node.op in _POPS:
      found = popped(op)
    elif node.op in _SHAPES:
      found = _constant(node, nodes[values.source(inputs[op][0])[0]])
    if found is not None:
      result[op] = found
  return result


def elements(maker: node_def_pb2.NodeDef,
             value_of: Callable[[int], np.ndarray | None]) -> _Elements | None:
  """Returns what a list contains; None if unknown.

  Args:
    maker: The op that made the list, or an argument that is a list.
    value_of: Function that returns the value of an input of `maker`, by its
      position; None if unknown.
  """
  if maker.op in op_kinds.ARGUMENTS:
    shapes = node_attributes.of(maker, '_handle_shapes').list.shape
    types = node_attributes.of(maker, '_handle_dtypes').list.type
    return (types[0], shapes[0]) if len(shapes) == len(types) == 1 else None
  place = _ELEMENT_SHAPES.get(maker.op)
  sizes = None if place is None else value_of(place)
  if sizes is None or sizes.ndim != 1:
    return None
  shape = tensor_shape_pb2.TensorShapeProto()
  for size in sizes.tolist():
    shape.dim.add(size=int(size))
  return node_attributes.of(maker, _ELEMENT_TYPE).type, shape


def _popped(pop: node_def_pb2.NodeDef,
            content: _Elements | None) -> node_def_pb2.NodeDef | None:
  """Returns an op with the outputs of a pop; None if their shape is unknown.

  The result is an `OptionalGetValue`, because the attributes of this op state
  the shapes of its outputs.
  """
  dtype = node_attributes.of(pop, _ELEMENT_TYPE).type
  # If the types differ, the op pops from a list that is an element itself.
  if content is None or content[0] != dtype:
    return None
  result = node_def_pb2.NodeDef(name=pop.name, op='OptionalGetValue',
                                input=[pop.input[0]])
  result.attr['output_types'].list.type.extend((types_pb2.DT_VARIANT, dtype))
  shapes = result.attr['output_shapes'].list.shape
  shapes.add()
  shapes.add().CopyFrom(content[1])
  return result


def _constant(reader: node_def_pb2.NodeDef,
              variable: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef | None:
  """Returns the shape of a variable; None if it is not fully known."""
  shapes: Sequence[tensor_shape_pb2.TensorShapeProto] = ()
  if variable.op in op_kinds.ARGUMENTS:
    shapes = node_attributes.of(variable, '_handle_shapes').list.shape
  elif variable.op in op_kinds.VARIABLES:
    shapes = [node_attributes.of(variable, 'shape').shape]
  if len(shapes) != 1 or shapes[0].unknown_rank:
    return None
  sizes = [dim.size for dim in shapes[0].dim]
  if min(sizes, default=0) < 0:
    return None
  dtype = node_attributes.of(reader, 'out_type').type or types_pb2.DT_INT32
  result = node_def_pb2.NodeDef(name=reader.name, op='Const')
  result.attr['dtype'].type = dtype
  result.attr['value'].tensor.CopyFrom(
      tensor_util.make_tensor_proto(sizes, dtype, [len(sizes)]))
  return result
