"""Splits variables, and ops that use their handles."""

from __future__ import annotations

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import variable_names
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import view as view_lib
from gdp_grappler.sharding import choice

# Ops that read a variable's value.
READS = frozenset(('ReadVariableOp',))
_INITIALIZED = frozenset(('VarIsInitializedOp', 'IsVariableInitialized'))
_SHAPES = frozenset(('VariableShape',))
_HANDLE_SHAPES, _HANDLE_TYPES = '_handle_shapes', '_handle_dtypes'


def shape_of(node: node_def_pb2.NodeDef) -> tuple[int, ...]:
  """Returns the shape of a node's variable; () if unknown."""
  if _HANDLE_SHAPES in node.attr:
    shapes = node.attr[_HANDLE_SHAPES].list.shape
    shape = shapes[0] if len(shapes) else None
  else:
    shape = node.attr['shape'].shape
  return () if shape is None else tuple(dim.size for dim in shape.dim)


def split(node: node_def_pb2.NodeDef, sizes: tuple[int, ...],
          axis: int) -> parts.Split:
  """Returns the names, sizes and types that a variable's parts will have."""
  if _HANDLE_TYPES in node.attr:
    dtype = node.attr[_HANDLE_TYPES].list.type[0]
  else:
    dtype = node.attr['dtype'].type
  names = tuple(f'{node.name}/part_{i}' for i in range(len(sizes)))
  return parts.Split(names, axis, sizes, shape_of(node), parts.Type(dtype))


def write(node: node_def_pb2.NodeDef, wanted: parts.Split, writer: parts.Writer,
          view: view_lib.View) -> parts.Split:
  """Writes the parts of a variable, and returns them with their final names."""
  names = []
  for index, name in enumerate(wanted.names):
    made = writer.add_like(node, name, (), view_lib.controls(node))
    part = writer.nodes[-1]
    _set_shape(part, wanted.shape_of(index))
    suffix = f'part_{index}'
    if node.op in op_kinds.ARGUMENTS and index:
      # The first part takes the number of the whole argument. Others are added
      # at the end.
      part.attr['index'].i = _next_argument(view, writer)
    elif node.op in op_kinds.VARIABLES:
      shared = node_attributes.of(node, 'shared_name').s.decode() or node.name
      part.attr['shared_name'].s = f'{shared}/{suffix}'.encode()
    known = variable_names.of(node)
    if known:
      variable_names.mark(part, f'{known}{choice.PART}{index}')
    names.append(made)
  return parts.Split(tuple(names), wanted.axis, wanted.sizes, wanted.shape,
                     wanted.dtype)


def ask(node: node_def_pb2.NodeDef, split_in: parts.Split,
        writer: parts.Writer) -> tuple[str, ...]:
  """Writes an op that reads a variable's shape or state, not its value.

  Returns the names of the ops; () for other ops.
  """
  if node.op in _SHAPES:
    number = node_attributes.of(node, 'out_type').type or parts.INT32.number
    value = writer.constant(np.array(split_in.shape, np.int64),
                            f'{node.name}/value', parts.Type(number))
    return (writer.add('Identity', node.name, (value,), view_lib.controls(node),
                       exactly=True, T=parts.Type(number)),)
  if node.op not in _INITIALIZED:
    return ()
  found = [
      writer.add_like(node, f'{node.name}/part_{i}', (name,),
                      view_lib.controls(node))
      for i, name in enumerate(split_in.names)
  ]
  both = found[0]
  for i, other in enumerate(found[1:], 1):
    last = i == len(found) - 1
    both = writer.add('LogicalAnd',
                      node.name if last else f'{node.name}/and_{i}',
                      (both, other), exactly=last)
  return (both,)


def _set_shape(node: node_def_pb2.NodeDef, shape: tuple[int, ...]) -> None:
  dims = parts.attribute(shape).shape
  if _HANDLE_SHAPES in node.attr:
    node.attr[_HANDLE_SHAPES].list.shape[0].CopyFrom(dims)
  else:
    node.attr['shape'].shape.CopyFrom(dims)


def _next_argument(view: view_lib.View, writer: parts.Writer) -> int:
  return 1 + max(node.attr['index'].i
                 for node in (*view.nodes.values(), *writer.nodes)
                 if node.op in op_kinds.ARGUMENTS)
