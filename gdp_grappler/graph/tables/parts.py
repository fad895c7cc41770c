"""Tensors in parts, and the writer of a rewritten graph."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Sequence

import numpy as np
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import tensor_util

# Attributes that are only valid for the whole tensor or for its old place.
_DROPPED = ('_output_shapes', '_class', '_gdp_variable')


@dataclasses.dataclass(frozen=True)
class Type:
  """A type of elements, in a class that distinguishes it from integers.

  Attributes:
    number: The type as in `types_pb2`.
  """

  number: int


INT32, INT64 = Type(types_pb2.DT_INT32), Type(types_pb2.DT_INT64)
RESOURCE = Type(types_pb2.DT_RESOURCE)


@dataclasses.dataclass(frozen=True)
class Split:
  """A tensor, or a variable, in K parts.

  Attributes:
    names: [K], tensors that together are the whole.
    axis: Axis along which they are joined.
    sizes: [K], sizes of the parts along the axis.
    shape: Shape of the whole.
    dtype: Type of the elements.
  """

  names: tuple[str, ...]
  axis: int
  sizes: tuple[int, ...]
  shape: tuple[int, ...]
  dtype: Type

  def shape_of(self, index: int) -> tuple[int, ...]:
    """Returns the shape of a part."""
    result = list(self.shape)
    result[self.axis] = self.sizes[index]
    return tuple(result)


class Writer:
  """Collects the nodes of a rewritten graph."""

  def __init__(self, taken: Iterable[str]) -> None:
    """Starts without nodes.

    Args:
      taken: Names that no new node may get.
    """
    self.nodes: list[node_def_pb2.NodeDef] = []
    self._taken = set(taken)

  def add(self, op: str, name: str, inputs: Sequence[str],
          controls: Sequence[str] = (), exactly: bool = False,
          **attributes: Any) -> str:
    """Adds a node. If its name is taken, the node gets another one.

    Args:
      op: Type of the node.
      name: Wanted name of the node.
      inputs: Tensors that the node reads.
      controls: Control inputs, as '^name'.
      exactly: Whether the node replaces the node of this name.
      **attributes: Values that `attribute` takes.

    Returns:
      The name of the node, which is also that of its first output.
    """
    node = node_def_pb2.NodeDef(op=op,
                                name=name if exactly else self._free(name))
    node.input.extend([*inputs, *controls])
    for key, value in attributes.items():
      node.attr[key].CopyFrom(attribute(value))
    self.nodes.append(node)
    return node.name

  def keep(self, node: node_def_pb2.NodeDef) -> None:
    """Adds an unchanged node."""
    self.nodes.append(node)

  def add_like(self, node: node_def_pb2.NodeDef, name: str,
               inputs: Sequence[str], controls: Sequence[str],
               **attributes: Any) -> str:
    """Adds a node with the type and the attributes of another node."""
    copied = {
        key: value for key, value in node.attr.items() if key not in _DROPPED
    }
    return self.add(node.op, name, inputs, controls, **{**copied, **attributes})

  def constant(self, value: Any, name: str, dtype: Type) -> str:
    """Adds a constant."""
    tensor = tensor_util.make_tensor_proto(value, dtype.number)
    return self.add('Const', name, (), value=tensor, dtype=dtype)

  def joined(self, split: Split, name: str, exactly: bool = False) -> str:
    """Adds the concatenation of a tensor's parts; `exactly` under this name."""
    axis = self.constant(split.axis, f'{name}/axis', INT32)
    return self.add('ConcatV2', name, (*split.names, axis), exactly=exactly,
                    T=split.dtype, N=len(split.names), Tidx=INT32)

  def cut(self, tensor: str, split: Split, name: str) -> tuple[str, ...]:
    """Adds ops that cut a whole tensor into parts.

    Args:
      tensor: The whole tensor.
      split: Axis and sizes of its parts.
      name: Name of the op.
    """
    sizes = self.constant(np.array(split.sizes, np.int64), f'{name}/sizes',
                          INT64)
    axis = self.constant(split.axis, f'{name}/axis', INT32)
    node = self.add('SplitV', name, (tensor, sizes, axis), T=split.dtype,
                    Tlen=INT64, num_split=len(split.sizes))
    return tuple(f'{node}:{i}' if i else node for i in range(len(split.sizes)))

  def graph_def(self, like: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """Returns the graph, with versions and functions of another graph."""
    result = graph_pb2.GraphDef()
    result.versions.CopyFrom(like.versions)
    result.library.CopyFrom(like.library)
    result.node.extend(self.nodes)
    return result

  def _free(self, name: str) -> str:
    found, count = name, 0
    while found in self._taken:
      count += 1
      found = f'{name}_{count}'
    self._taken.add(found)
    return found


def attribute(value: Any) -> attr_value_pb2.AttrValue:
  """Returns an AttrValue of a Python value: a type, a number, a shape, ..."""
  result = attr_value_pb2.AttrValue()
  if isinstance(value, attr_value_pb2.AttrValue):
    result.CopyFrom(value)
  elif isinstance(value, bool):
    result.b = value
  elif isinstance(value, Type):
    result.type = value.number
  elif isinstance(value, int):
    result.i = value
  elif isinstance(value, tuple):
    for size in value:
      result.shape.dim.add(size=size)
  elif isinstance(value, bytes):
    result.s = value
  else:
    result.tensor.CopyFrom(value)
  return result
