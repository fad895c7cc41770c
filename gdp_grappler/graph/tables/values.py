"""Tensors in parts, and rules of ops that compute parts from parts."""

from __future__ import annotations

import dataclasses
from typing import Mapping, Sequence

import numpy as np
from tensorflow.core.framework import node_def_pb2

from gdp_grappler.graph import node_attributes
from gdp_grappler.graph.tables import lookups
from gdp_grappler.graph.tables import parts
from gdp_grappler.graph.tables import view as view_lib

# Ops that compute each element from the elements at the same position.
_BY_ELEMENT = frozenset(
    ('Abs', 'Add', 'AddN', 'AddV2', 'Cast', 'ClipByValue', 'Div', 'DivNoNan',
     'Equal', 'Exp', 'Greater', 'GreaterEqual', 'Identity', 'IsFinite', 'IsNan',
     'Less', 'LessEqual', 'Log', 'Log1p', 'LogicalAnd', 'LogicalNot',
     'LogicalOr', 'Maximum', 'Minimum', 'Mul', 'MulNoNan', 'Neg', 'NotEqual',
     'OnesLike', 'Pow', 'PreventGradient', 'RealDiv', 'Reciprocal', 'Rsqrt',
     'SelectV2', 'Sigmoid', 'Sign', 'Snapshot', 'Sqrt', 'Square',
     'SquaredDifference', 'StopGradient', 'Sub', 'Tanh', 'Xdivy', 'ZerosLike'))
_PRODUCTS = {
    'MatMul': ('transpose_a', 'transpose_b'), 'BatchMatMul': ('adj_x', 'adj_y'),
    'BatchMatMulV2': ('adj_x', 'adj_y')
}
_SEGMENTS = frozenset(('UnsortedSegmentSum',))
# Ops that sum over all elements.
_SUMS = frozenset(('L2Loss',))


class Values:
  """The tensors that are in parts, and the names of the parts."""

  def __init__(self, view: view_lib.View, writer: parts.Writer,
               handles: Mapping[str, parts.Split]) -> None:
    """Begins with the variables whose nodes output their values.

    Args:
      view: The original graph.
      writer: Writer of ops that compute parts.
      handles: Variables in parts.
    """
    self.view, self.writer = view, writer
    # Tensors that exist only in parts.
    self.split = {
        name: split for name, split in handles.items()
        if view.dtype(name) != parts.RESOURCE
    }
    # Nodes that change a variable.
    self.sinks: set[str] = set()
    self._whole: set[str] = set()
    # Tensors that were computed in parts because an op needs their parts.
    self.computed: dict[str, parts.Split] = {}
    self._cut: dict[tuple[str, int, tuple[int, ...]], tuple[str, ...]] = {}

  def read(self, node: node_def_pb2.NodeDef, handle: parts.Split) -> None:
    """Writes the reads of a variable in parts."""
    names = self._each(node, [(name,) for name in handle.names])
    self.split[node.name] = dataclasses.replace(handle, names=names)

  def changed(self, node: node_def_pb2.NodeDef, split: parts.Split,
              made: tuple[str, ...]) -> None:
    """Records updates of a variable's parts, which may output the parts."""
    self.sinks.update(made)
    if self.view.shape(node.name) is not None:
      self.split[node.name] = dataclasses.replace(split, names=made)

  def want_whole(self, tensor: str) -> None:
    """Records that an op reads a whole tensor, by its name."""
    if tensor in self.split:
      self._whole.add(tensor)

  def whole(self, tensor: str) -> str:
    """Returns a tensor's name, under which the whole tensor will be written."""
    self.want_whole(tensor)
    return tensor

  def join_wanted(self) -> None:
    """Writes the whole tensors that ops read."""
    for tensor in sorted(self._whole):
      self.writer.joined(self.split[tensor], tensor, exactly=True)

  def replaced(self) -> dict[str, tuple[str, ...]]:
    """Returns nodes whose value is only in parts, with the parts."""
    return {
        name: split.names for name, split in self.split.items()
        if name not in self._whole
    }

  def make(self, node: node_def_pb2.NodeDef, wanted: parts.Split) -> bool:
    """Writes an op's output in parts; False if there is no rule."""
    names = self._computed(node, wanted)
    if names:
      self.split[node.name] = dataclasses.replace(wanted, names=names)
    return bool(names)

  def hand_on(self, node: node_def_pb2.NodeDef) -> bool:
    """Writes an op that computes parts from parts; False for other ops."""
    shape, dtype = self.view.shape(node.name), self.view.dtype(node.name)
    if shape is None or dtype is None:
      return False
    for position, tensor in enumerate(view_lib.inputs(node)):
      given = self.split.get(tensor)
      axis = (None if given is None else self._axis_out(node, position, given,
                                                        len(shape)))
      if given is None or axis is None:
        continue
      wanted = parts.Split((), axis, given.sizes, shape, dtype)
      if self.make(node, wanted):
        return True
    return False

  def sum_up(self, node: node_def_pb2.NodeDef) -> bool:
    """Writes an op that sums over the parts; False for other ops."""
    taken = view_lib.inputs(node)
    each: list[tuple[str, ...]] = []
    if node.op in _SUMS and taken[0] in self.split:
      each = [(name,) for name in self.split[taken[0]].names]
    elif node.op == 'MatMul':
      given = next((self.split[t] for t in taken if t in self.split), None)
      shapes = [self.view.shape(t) for t in taken]
      axes = [self._inner_axis(node, position) for position in (0, 1)]
      if given is None or None in shapes:
        return False
      operands = [
          self._cut_up(tensor,
                       parts.Split((), axis, given.sizes, shape, given.dtype))
          for tensor, axis, shape in zip(taken, axes, shapes)
          if shape is not None and shape[axis] == sum(given.sizes)
      ]
      if len(operands) == 2:
        each = list(zip(*operands))
    count = len(each)
    if not count:
      return False
    dtype = self.view.dtype(node.name)
    summands = self._each(node, each)
    self.writer.add('AddN', node.name, summands, exactly=True, N=count, T=dtype)
    return True

  def parts_of(self, tensor: str, wanted: parts.Split) -> tuple[str, ...]:
    """Returns the parts of a tensor, which is computed in parts if possible.

    Args:
      tensor: A tensor of the original graph.
      wanted: Axis and sizes of its parts; names are not used.
    """
    key = tensor, wanted.axis, wanted.sizes
    if key not in self._cut and tensor not in self.split:
      node, output = self.view.producer(tensor)
      names = () if output else self._computed(node, wanted)
      if names:
        self._cut[key] = names
        self.computed[tensor] = dataclasses.replace(wanted, names=())
    return self._cut_up(tensor, wanted)

  def _cut_up(self, tensor: str, wanted: parts.Split) -> tuple[str, ...]:
    """Returns the parts of a tensor, and cuts it if it has none."""
    given = self.split.get(tensor)
    if given is not None and (given.axis, given.sizes) == (wanted.axis,
                                                           wanted.sizes):
      return given.names
    key = tensor, wanted.axis, wanted.sizes
    if key not in self._cut:
      name = tensor.replace(':', '_')
      self._cut[key] = self.writer.cut(self.whole(tensor), wanted,
                                       f'{name}/parts')
    return self._cut[key]

  def _computed(self, node: node_def_pb2.NodeDef,
                wanted: parts.Split) -> tuple[str, ...]:
    """Writes the parts of an op's output; () if there is no rule."""
    if node.op in _BY_ELEMENT:
      return self._by_element(node, wanted)
    if node.op in _PRODUCTS:
      return self._product(node, wanted)
    if node.op == 'Transpose':
      return self._transposed(node, wanted)
    if node.op in _SEGMENTS and not wanted.axis:
      return self._segments(node, wanted)
    return ()

  def _by_element(self, node: node_def_pb2.NodeDef,
                  wanted: parts.Split) -> tuple[str, ...]:
    by_input = []
    for tensor in view_lib.inputs(node):
      shape, dtype = self.view.shape(tensor), self.view.dtype(tensor)
      if shape is None or dtype is None:
        return ()
      axis = wanted.axis - len(wanted.shape) + len(shape)
      if axis < 0 or shape[axis] == 1 != wanted.shape[wanted.axis]:
        by_input.append((self.whole(tensor),) * len(wanted.sizes))
      elif shape[axis] == wanted.shape[wanted.axis]:
        by_input.append(
            self.parts_of(tensor,
                          parts.Split((), axis, wanted.sizes, shape, dtype)))
      else:
        return ()
    return self._each(node, list(zip(*by_input)))

  def _product(self, node: node_def_pb2.NodeDef,
               wanted: parts.Split) -> tuple[str, ...]:
    taken, rank = view_lib.inputs(node), len(wanted.shape)
    position = wanted.axis - (rank - 2)
    shape = self.view.shape(taken[position]) if position in (0, 1) else None
    if (shape is None or len(shape) != 2 or
        (position == 0 and len(self.view.shape(taken[1]) or ()) != 2)):
      return ()
    axis = 1 - self._inner_axis(node, position)
    cut = self._cut_up(taken[position],
                       parts.Split((), axis, wanted.sizes, shape, wanted.dtype))
    other = self.whole(taken[1 - position])
    return self._each(
        node,
        [(part, other) if position == 0 else (other, part) for part in cut])

  def _transposed(self, node: node_def_pb2.NodeDef,
                  wanted: parts.Split) -> tuple[str, ...]:
    tensor, order = view_lib.inputs(node)
    permutation, shape = self.view.constant(order), self.view.shape(tensor)
    if permutation is None or shape is None:
      return ()
    axis = int(permutation[wanted.axis])
    cut = self.parts_of(
        tensor, parts.Split((), axis, wanted.sizes, shape, wanted.dtype))
    return self._each(node, [(part, order) for part in cut])

  def _segments(self, node: node_def_pb2.NodeDef,
                wanted: parts.Split) -> tuple[str, ...]:
    """Writes sums of rows by their numbers, as in a gradient made dense."""
    data, ids, _ = view_lib.inputs(node)
    if len(self.view.shape(ids) or ()) != 1:
      return ()
    name, numbers = f'{node.name}/rows', parts.Type(node.attr['Tindices'].type)
    split = dataclasses.replace(wanted, names=('',) * len(wanted.sizes))
    owners = lookups.Owners(self.whole(ids), numbers, split, name, self.writer)
    rows = owners.shared_out(self.whole(data), wanted.dtype, 'data')
    count_type = parts.Type(
        node_attributes.of(node, 'Tnumsegments').type or parts.INT32.number)
    return self._each(
        node,
        [(row, own, self.writer.constant(size, f'{name}/count_{i}', count_type))
         for i, (row, own,
                 size) in enumerate(zip(rows, owners.wanted, wanted.sizes))])

  def _axis_out(self, node: node_def_pb2.NodeDef, position: int,
                given: parts.Split, rank: int) -> int | None:
    """Returns the axis of the output's parts; None if it has no parts."""
    if node.op in _BY_ELEMENT:
      return given.axis + rank - len(given.shape)
    if node.op in _PRODUCTS and len(given.shape) == 2:
      is_inner = given.axis == self._inner_axis(node, position)
      return None if is_inner else rank - 2 + position
    if node.op == 'Transpose' and not position:
      permutation = self.view.constant(view_lib.inputs(node)[1])
      return (None if permutation is None else int(
          np.flatnonzero(permutation == given.axis)[0]))
    return None

  def _inner_axis(self, node: node_def_pb2.NodeDef, position: int) -> int:
    """Returns the axis of a matrix along which a product sums."""
    turned = node_attributes.of(node, _PRODUCTS[node.op][position]).b
    return int(position == int(turned))

  def _each(self, node: node_def_pb2.NodeDef,
            taken: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Writes an op once for each part."""
    return tuple(
        self.writer.add_like(node, f'{node.name}/part_{i}', inputs,
                             view_lib.controls(node))
        for i, inputs in enumerate(taken))
