"""Lookups of rows in a split table."""

from __future__ import annotations

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import view as view_lib

_OF_HANDLES = frozenset(('ResourceGather',))
_OF_VALUES = frozenset(('Gather', 'GatherV2'))


class Owners:
  """Row numbers, divided among the parts that have the rows."""

  def __init__(self, ids: str, ids_type: parts.Type, split: parts.Split,
               name: str, writer: parts.Writer) -> None:
    """Writes the ops that divide row numbers among the parts.

    Args:
      ids: Tensor of integers [...], row numbers.
      ids_type: Type of the numbers.
      split: The table, cut along its rows.
      name: Scope of the ops.
      writer: Writer of the ops.
    """
    self._writer, self._name, self._count = writer, name, len(split.names)

    def number(value: int, what: str) -> str:
      return writer.constant(value, f'{name}/{what}', ids_type)

    all_of = writer.constant(np.array([-1], np.int32), f'{name}/all',
                             parts.INT32)
    flat = writer.add('Reshape', f'{name}/flat', (ids, all_of), T=ids_type,
                      Tshape=parts.INT32)
    each = number(split.sizes[0], 'each')
    owner = writer.add('FloorDiv', f'{name}/quotient', (flat, each), T=ids_type)
    # A number out of range is also out of range in the first or the last part.
    owner = writer.add('Maximum', f'{name}/not_below',
                       (owner, number(0, 'first')), T=ids_type)
    owner = writer.add('Minimum', f'{name}/owner',
                       (owner, number(self._count - 1, 'last')), T=ids_type)
    before = writer.add('Mul', f'{name}/before', (owner, each), T=ids_type)
    local = writer.add('Sub', f'{name}/local', (flat, before), T=ids_type)
    self._owner = writer.add('Cast', f'{name}/owner_int32', (owner,),
                             SrcT=ids_type, DstT=parts.INT32)
    self.wanted = self.shared_out(local, ids_type, 'wanted')
    self._flat, self._ids_type = flat, ids_type

  def shared_out(self, tensor: str, dtype: parts.Type,
                 what: str) -> tuple[str, ...]:
    """Divides a tensor with a row per row number among parts, [K] tensors."""
    node = self._writer.add('DynamicPartition', f'{self._name}/{what}',
                            (tensor, self._owner), T=dtype,
                            num_partitions=self._count)
    return tuple(f'{node}:{i}' if i else node for i in range(self._count))

  def places(self) -> tuple[str, ...]:
    """Returns the positions of each part's numbers among all, [K] tensors."""
    add, name = self._writer.add, self._name
    length = add('Size', f'{name}/length', (self._flat,), T=self._ids_type,
                 out_type=parts.INT32)
    first = self._writer.constant(0, f'{name}/zero', parts.INT32)
    step = self._writer.constant(1, f'{name}/one', parts.INT32)
    rows = add('Range', f'{name}/range', (first, length, step),
               Tidx=parts.INT32)
    return self.shared_out(rows, parts.INT32, 'places')


def write(node: node_def_pb2.NodeDef, split: parts.Split, view: view_lib.View,
          writer: parts.Writer) -> bool:
  """Writes a lookup of rows in parts; False if the node is no such lookup."""
  if node.op not in _OF_HANDLES | _OF_VALUES or split.axis:
    return False
  taken = view_lib.inputs(node)
  if node.op == 'GatherV2':
    axis = view.constant(taken[2])
    if axis is None or int(axis) or node_attributes.of(node, 'batch_dims').i:
      return False
  name, ids_type = node.name, parts.Type(node.attr['Tindices'].type)
  owners = Owners(taken[1], ids_type, split, f'{name}/rows', writer)
  found = [
      writer.add_like(node, f'{name}/part_{i}', (part, ids, *taken[2:]),
                      view_lib.controls(node))
      for i, (part, ids) in enumerate(zip(split.names, owners.wanted))
  ]
  rows = writer.add('DynamicStitch', f'{name}/rows/joined',
                    (*owners.places(), *found), N=len(found), T=split.dtype)
  outer = writer.add('Shape', f'{name}/rows/outer', (taken[1],), T=ids_type,
                     out_type=parts.INT32)
  inner = writer.constant(np.array(split.shape[1:], np.int32),
                          f'{name}/rows/inner', parts.INT32)
  axis_0 = writer.constant(0, f'{name}/rows/axis', parts.INT32)
  shape = writer.add('ConcatV2', f'{name}/rows/shape', (outer, inner, axis_0),
                     N=2, T=parts.INT32, Tidx=parts.INT32)
  writer.add('Reshape', name, (rows, shape), exactly=True, T=split.dtype,
             Tshape=parts.INT32)
  return True
