"""Tensors in parts, and the graph that is being written."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterable, Sequence

import numpy as np
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import tensor_util

# What says how another graph would run, or where the whole was.
_DROPPED = ('_output_shapes', '_class', '_gdp_variable')


@dataclasses.dataclass(frozen=True)
class Type:
  """A type of elements, which in Python is a number like others.

  Attributes:
    number: As in `types_pb2`.
  """

  number: int


INT32, INT64 = Type(types_pb2.DT_INT32), Type(types_pb2.DT_INT64)
RESOURCE = Type(types_pb2.DT_RESOURCE)


@dataclasses.dataclass(frozen=True)
class Split:
  """A tensor, or a variable, in K parts.

  Attributes:
    names: [K] of tensors that together are the whole.
    axis: Along which they are joined.
    sizes: [K], of the parts along the axis.
    shape: Of the whole.
    dtype: Of the elements.
  """

  names: tuple[str, ...]
  axis: int
  sizes: tuple[int, ...]
  shape: tuple[int, ...]
  dtype: Type

  def shape_of(self, index: int) -> tuple[int, ...]:
    """Of a part."""
    result = list(self.shape)
    result[self.axis] = self.sizes[index]
    return tuple(result)

  @property
  def elements(self) -> int:
    """Of the whole."""
    return math.prod(self.shape)


class Writer:
  """The nodes of a graph as it is to be."""

  def __init__(self, taken: Iterable[str]) -> None:
    """Starts with no nodes.

    Args:
      taken: Names that no new node may get.
    """
    self.nodes: list[node_def_pb2.NodeDef] = []
    self._taken = set(taken)

  def add(self, op: str, name: str, inputs: Sequence[str],
          controls: Sequence[str] = (), exactly: bool = False,
          **attributes: Any) -> str:
    """Adds a node, under another name where that is taken.

    Args:
      op: Its type.
      name: What to call it.
      inputs: Tensors that it takes.
      controls: Nodes that come before, as '^name'.
      exactly: It takes the place of the node of that name.
      **attributes: Values that `attribute` takes.

    Returns:
      Its name, which is its first output.
    """
    node = node_def_pb2.NodeDef(op=op,
                                name=name if exactly else self._free(name))
    node.input.extend([*inputs, *controls])
    for key, value in attributes.items():
      node.attr[key].CopyFrom(attribute(value))
    self.nodes.append(node)
    return node.name

  def keep(self, node: node_def_pb2.NodeDef) -> None:
    """Adds a node as it was."""
    self.nodes.append(node)

  def add_like(self, node: node_def_pb2.NodeDef, name: str,
               inputs: Sequence[str], controls: Sequence[str],
               **attributes: Any) -> str:
    """Adds a node with the type and the attributes of another one."""
    copied = {
        key: value for key, value in node.attr.items() if key not in _DROPPED
    }
    return self.add(node.op, name, inputs, controls, **{**copied, **attributes})

  def constant(self, value: Any, name: str, dtype: Type) -> str:
    """Adds a constant."""
    tensor = tensor_util.make_tensor_proto(value, dtype.number)
    return self.add('Const', name, (), value=tensor, dtype=dtype)

  def joined(self, split: Split, name: str, exactly: bool = False) -> str:
    """Adds the whole of a tensor in parts; `exactly` under this name."""
    axis = self.constant(split.axis, f'{name}/axis', INT32)
    return self.add('ConcatV2', name, (*split.names, axis), exactly=exactly,
                    T=split.dtype, N=len(split.names), Tidx=INT32)

  def cut(self, tensor: str, split: Split, name: str) -> tuple[str, ...]:
    """Adds the parts of a tensor that is whole.

    Args:
      tensor: The whole.
      split: What its parts are like.
      name: What to call them.
    """
    sizes = self.constant(np.array(split.sizes, np.int64), f'{name}/sizes',
                          INT64)
    axis = self.constant(split.axis, f'{name}/axis', INT32)
    node = self.add('SplitV', name, (tensor, sizes, axis), T=split.dtype,
                    Tlen=INT64, num_split=len(split.sizes))
    return tuple(f'{node}:{i}' if i else node for i in range(len(split.sizes)))

  def graph_def(self, like: graph_pb2.GraphDef) -> graph_pb2.GraphDef:
    """The graph, with versions and functions of another one."""
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
  """An attribute's value: of its own type, a type, a number, a shape, ..."""
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
