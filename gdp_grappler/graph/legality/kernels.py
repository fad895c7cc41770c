"""Device types that have a kernel for a node, from TensorFlow's registry."""

from __future__ import annotations

import collections
import functools
from typing import Any, Mapping

from tensorflow.core.framework import node_def_pb2
from tensorflow.python.framework import kernels as tf_kernels
from tensorflow.python.framework import op_def_registry

from gdp_grappler.graph import op_graph

# Type of kernels for all devices without a more specific kernel.
_DEFAULT = 'DEFAULT'


def allowed_types(node: node_def_pb2.NodeDef) -> tuple[bool, ...]:
  """Whether each of `op_graph.DEVICE_TYPES` can run a node, [2].

  Kernels are matched as TensorFlow matches them: by device type, by the types
  of the node's attributes and by its `_kernel` label. A call of a function by
  its name has no kernel, and can be on every device.
  """
  if op_def(node.op) is None:
    return (True,) * len(op_graph.DEVICE_TYPES)
  found = {kernel.device_type for kernel in _kernels(node)}
  return tuple(
      kind in found or _DEFAULT in found for kind in op_graph.DEVICE_TYPES)


def works_on_host(node: node_def_pb2.NodeDef) -> bool:
  """Whether a node on a GPU has all its tensors in the host's memory.

  Such a node runs the kernel of a CPU. Many ops of int32 are such nodes.
  """
  definition, found = op_def(node.op), host_arguments(node)
  return definition is not None and found is not None and all(
      arg.name in found
      for arg in (*definition.input_arg, *definition.output_arg))


def host_arguments(node: node_def_pb2.NodeDef) -> frozenset[str] | None:
  """Arguments of an op that a node on a GPU has in the host's memory.

  The result holds names of inputs and outputs in the OpDef. It is None if the
  node cannot be on a GPU.
  """
  found = [kernel for kernel in _kernels(node) if kernel.device_type != 'CPU']
  # A kernel for all devices is used only if there is none for GPUs.
  found = [k for k in found if k.device_type != _DEFAULT] or found
  if not found:
    return None
  return frozenset.intersection(
      *(frozenset(kernel.host_memory_arg) for kernel in found))


def types_for_variable(dtype: int) -> tuple[bool, ...]:
  """Whether each of `op_graph.DEVICE_TYPES` can hold a variable, [2].

  Args:
    dtype: DataType of the variable. GPUs hold no int32, for example.
  """
  handle = node_def_pb2.NodeDef(op='VarHandleOp')
  handle.attr['dtype'].type = dtype
  return allowed_types(handle)


@functools.cache
def op_def(op_type: str) -> Any:
  """Returns TensorFlow's OpDef; None for types unknown to TensorFlow."""
  return op_def_registry.get(op_type)


@functools.cache
def is_stateful(op_type: str) -> bool:
  """Whether TensorFlow calls an op type stateful, or does not know it."""
  definition = op_def(op_type)
  return definition is None or definition.is_stateful


@functools.cache
def _kernels_by_op() -> collections.defaultdict[str, list[Any]]:
  result: collections.defaultdict[str,
                                  list[Any]] = collections.defaultdict(list)
  wanted = (*op_graph.DEVICE_TYPES, _DEFAULT)
  for kernel in tf_kernels.get_all_registered_kernels().kernel:
    if kernel.device_type in wanted:
      result[kernel.op].append(kernel)
  return result


@functools.cache
def _constrained(op_type: str) -> tuple[str, ...]:
  """Returns the names of attributes that choose among the kernels of an op."""
  return tuple(
      sorted({
          constraint.name for kernel in _kernels_by_op()[op_type]
          for constraint in kernel.constraint
      }))


def _kernels(node: node_def_pb2.NodeDef) -> tuple[Any, ...]:
  """Returns the kernels that fit a node, for all types of devices."""
  label = node.attr['_kernel'].s.decode() if '_kernel' in node.attr else ''
  return _matching(node.op, label,
                   tuple(_types(node, name) for name in _constrained(node.op)))


@functools.cache
def _matching(op_type: str, label: str, types: tuple[tuple[int, ...],
                                                     ...]) -> tuple[Any, ...]:
  values = dict(zip(_constrained(op_type), types))
  return tuple(kernel for kernel in _kernels_by_op()[op_type]
               if kernel.label == label and _matches(kernel, values))


def _matches(kernel: Any, values: Mapping[str, tuple[int, ...]]) -> bool:
  for constraint in kernel.constraint:
    allowed = constraint.allowed_values.list.type
    if allowed and any(v not in allowed for v in values[constraint.name]):
      return False
  return True


def _types(node: node_def_pb2.NodeDef, name: str) -> tuple[int, ...]:
  """Returns the types in an attribute, or its default if the node has none."""
  if name in node.attr:
    value = node.attr[name]
  else:
    definition = op_def(node.op)
    value = next((a.default_value for a in definition.attr if a.name == name),
                 None) if definition else None
  if value is None:
    return ()
  if value.HasField('list'):
    return tuple(value.list.type)
  return (value.type,)
