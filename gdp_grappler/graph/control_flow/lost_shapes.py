"""Nodes that tell shapes which Grappler's shape inference would lose.

Shape inference does not know which shapes the elements of a list have. So it
does not know the shapes of the tensors that the loop of a gradient pops, nor of
tensors computed from these. But the op that made the list has the shape of its
elements as an input.

Shape inference also does not know the output of `VariableShape`, the output of
`InvertPermutation`, which a gradient of a transpose reads, or the shape of
values that are looked up in a hash table.
"""

from __future__ import annotations

import functools
from typing import Callable, Sequence

import numpy as np
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import tensor_shape_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import tensor_util

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import node_table
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph.control_flow import stored_tensors
from gdp_grappler.graph.control_flow import values as values_lib

_POPS = frozenset(('TensorListPopBack',))
_SHAPES = frozenset(('VariableShape',))
_INVERSIONS = frozenset(('InvertPermutation',))
_LOOKUPS = frozenset(('LookupTableFind', 'LookupTableFindV2'))
# Tables whose keys may be vectors. Shape inference knows their shapes.
_TENSOR_TABLES = frozenset(('AnonymousMutableDenseHashTable',
                            'MutableDenseHashTable', 'MutableDenseHashTableV2'))
_LOST = _POPS | _SHAPES | _INVERSIONS | _LOOKUPS
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
  if not table.types & (_LOST | stored_tensors.TAKES):
    return {}
  nodes = table.nodes
  inputs: list[list[values_lib.Tensor]] = [[] for _ in nodes]
  for source, output, target in table.edges:
    if output >= 0:
      inputs[target].append((source, output))
  values = values_lib.Values(nodes, inputs, lambda _: None)

  def array(op: int, place: int) -> np.ndarray | None:
    if place >= len(inputs[op]):
      return None  # Shape inference rejects the graph.
    value = values.value(inputs[op][place])
    return None if value is None else value.array

  def maker(op: int, place: int) -> node_def_pb2.NodeDef:
    return nodes[values.source(inputs[op][place])[0]]

  def popped(op: int) -> node_def_pb2.NodeDef | None:
    made = values.creator(inputs[op][0])
    if made is None:
      return None
    return _popped(nodes[op],
                   elements(nodes[made[0]], functools.partial(array, made[0])))

  def found(op: int) -> node_def_pb2.NodeDef | None:
    kind = nodes[op].op
    if kind in _POPS and inputs[op]:
      return popped(op)
    if kind in _SHAPES and inputs[op]:
      return _shape(nodes[op], maker(op, 0))
    if kind in _INVERSIONS:
      return _inverse(nodes[op], array(op, 0))
    # Shape inference would take known keys for the values that they stand for.
    if kind in _LOOKUPS and len(inputs[op]) == 3 and array(op, 1) is None:
      return _looked_up(nodes[op], maker(op, 0), maker(op, 2))
    return None

  lost = np.flatnonzero(table.flags(lambda node: node.op in _LOST)).tolist()
  result = {op: node for op in lost if (node := found(op)) is not None}
  return result | stored_tensors.substitutes(table, inputs, values)


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


def _shape(reader: node_def_pb2.NodeDef,
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
  return _constant(reader.name, sizes, node_attributes.of(reader, 'out_type'))


def _inverse(inversion: node_def_pb2.NodeDef,
             permutation: np.ndarray | None) -> node_def_pb2.NodeDef | None:
  """Returns an inverse permutation; None if the permutation is unknown."""
  if permutation is None or permutation.ndim != 1:
    return None
  inverse = np.argsort(permutation)
  if (permutation[inverse] != np.arange(len(inverse))).any():
    return None  # The op fails in a step.
  return _constant(inversion.name, inverse.tolist(),
                   node_attributes.of(inversion, 'T'))


def _looked_up(lookup: node_def_pb2.NodeDef, table: node_def_pb2.NodeDef,
               default: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef | None:
  """Returns an op with the shape of the keys, if the values are scalars.

  Args:
    lookup: An op that looks up keys in a table.
    table: The op that makes the table, or an argument.
    default: The op that makes the value of keys that are not in the table. It
      has the shape of a value.
  """
  shapes: Sequence[tensor_shape_pb2.TensorShapeProto] = ()
  if default.op in op_kinds.ARGUMENTS:
    shapes = node_attributes.of(default, '_output_shapes').list.shape
  elif default.op == 'Const':
    shapes = [node_attributes.of(default, 'value').tensor.tensor_shape]
  is_scalar = len(shapes) == 1 and not (shapes[0].unknown_rank or shapes[0].dim)
  if not is_scalar or table.op in _TENSOR_TABLES:
    return None
  result = node_def_pb2.NodeDef(name=lookup.name, op='Cast',
                                input=[lookup.input[1]])
  result.attr['SrcT'].CopyFrom(node_attributes.of(lookup, 'Tin'))
  result.attr['DstT'].CopyFrom(node_attributes.of(lookup, 'Tout'))
  return result


def _constant(name: str, numbers: Sequence[int],
              dtype: attr_value_pb2.AttrValue) -> node_def_pb2.NodeDef | None:
  """Returns a vector of integers, by default int32; None for other types."""
  kind = dtype.type or types_pb2.DT_INT32
  if kind not in (types_pb2.DT_INT32, types_pb2.DT_INT64):
    return None  # Shape inference rejects the graph.
  result = node_def_pb2.NodeDef(name=name, op='Const')
  result.attr['dtype'].type = kind
  result.attr['value'].tensor.CopyFrom(
      tensor_util.make_tensor_proto(numbers, kind, [len(numbers)]))
  return result
