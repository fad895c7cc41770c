"""Types of the inputs and outputs of a node, from its op's definition."""

from __future__ import annotations

import functools
from typing import Any, Mapping, NamedTuple

from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2

from gdp_grappler.graph.legality import kernels


class ArgType(NamedTuple):
  """DataType of one input or output, and whether it is a reference."""

  dtype: int
  is_ref: bool


class Signature(NamedTuple):
  """Types of all inputs and outputs of a node."""

  inputs: tuple[ArgType, ...]
  outputs: tuple[ArgType, ...]


def signature(node: node_def_pb2.NodeDef) -> Signature:
  """Types of a node's data inputs and outputs.

  Nodes that call a function of the graph's own library have none: TensorFlow
  has no OpDef for them, and they are never moved.
  """
  values: list[tuple[int, ...] | int | None] = []
  for name in _typing_attributes(node.op):
    value = node.attr[name] if name in node.attr else None
    if value is None:
      values.append(None)
    else:
      number = value.type or value.i
      # Only an attribute without type and number can be a list.
      values.append(
          tuple(value.list.type
               ) if not number and value.HasField('list') else number)
  return _signature(node.op, tuple(values))


@functools.cache
def _typing_attributes(op_type: str) -> tuple[str, ...]:
  definition = kernels.op_def(op_type)
  if definition is None:
    return ()
  names: set[str] = set()
  for arg in (*definition.input_arg, *definition.output_arg):
    names.update((arg.type_attr, arg.number_attr, arg.type_list_attr))
  return tuple(sorted(names - {''}))


@functools.cache
def _signature(op_type: str, values: tuple[tuple[int, ...] | int | None,
                                           ...]) -> Signature:
  definition = kernels.op_def(op_type)
  if definition is None:
    return Signature((), ())
  defaults = {a.name: a.default_value for a in definition.attr}
  known: dict[str, tuple[int, ...] | int] = {}
  for name, value in zip(_typing_attributes(op_type), values):
    if value is None:
      default = defaults[name]
      value = (tuple(default.list.type)
               if default.HasField('list') else default.type or default.i)
    known[name] = value
  return Signature(_expand(definition.input_arg, known),
                   _expand(definition.output_arg, known))


def _expand(args: Any, known: Mapping[str, Any]) -> tuple[ArgType, ...]:
  result: list[ArgType] = []
  for arg in args:
    if arg.type_list_attr:
      # 0 if a faulty node lacks the attribute; shape inference reports it.
      types = known[arg.type_list_attr] or ()
    else:
      dtype = known[arg.type_attr] if arg.type_attr else arg.type
      types = [dtype] * (known[arg.number_attr] if arg.number_attr else 1)
    result.extend(
        ArgType(dtype % 100, arg.is_ref or dtype > 100) for dtype in types)
  return tuple(result)


def is_handle(arg: ArgType) -> bool:
  """Whether a value has a meaning only on the device that made it."""
  return arg.is_ref or arg.dtype in (types_pb2.DT_RESOURCE,
                                     types_pb2.DT_VARIANT)
