"""Shapes of a signature's inputs, and shapes that the user gives."""

from __future__ import annotations

from typing import Any, Callable, Mapping, Sequence

import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import training_step

# Names of inputs, and sizes of their dimensions.
Shapes = Sequence[tuple[str, Sequence[int]]]


def give(graph_def: graph_pb2.GraphDef, signature: str,
         definition: meta_graph_pb2.SignatureDef, path: str, batch_size: int,
         shapes: Shapes, tell: Callable[[str], None]) -> None:
  """Sets the shapes of placeholders that a signature leaves open.

  Args:
    graph_def: Graph of all signatures; changed in place.
    signature: Name of the signature.
    definition: Definition of the signature.
    path: Path of the file, for messages.
    batch_size: Size of unknown first dimensions.
    shapes: Shapes that the user gives for inputs.
    tell: Function that is called with a line about the signature and its
      inputs.

  Raises:
    InvalidGraphError: an input has an unknown number of dimensions, or another
      shape than the user gives, or the user names an input that does not exist.
  """
  inputs = {
      name_parts.node_of(info.name): key
      for key, info in definition.inputs.items()
  }
  said = dict(shapes)
  unknown = sorted(set(said) - set(inputs.values()))
  if unknown:
    raise errors.InvalidGraphError(
        f'{path}: signature "{signature}" has no input "{unknown[0]}". It has '
        f'{", ".join(sorted(inputs.values())) or "none"}.')
  sparse = [key for key in said if not definition.inputs[key].name]
  if sparse:
    raise errors.InvalidGraphError(
        f'{path}: input "{sparse[0]}" of signature "{signature}" is sparse or '
        'ragged, so it has several tensors and takes no shape. Leave out '
        f'{spelling.argument("shape")} for it.')
  taken: dict[str, list[int]] = {}
  for node in graph_def.node:
    if node.op not in op_kinds.PLACEHOLDERS:
      continue
    key = inputs.get(node.name)
    if key is not None:
      taken[key] = _known(node, key, signature, path, batch_size, said)
      _write(node, taken[key])
    elif not _is_open(node):
      _write(node,
             training_step.known_shape(node.attr['shape'].shape, batch_size))
  tell(f'{path}: signature "{signature}" is taken{_listed(taken)}')


def take(graph_def: graph_pb2.GraphDef, concrete: Any,
         arguments: Sequence[Any]) -> None:
  """Sets sizes that a function leaves open to those of its arguments.

  Functions leave the sizes of ragged and of sparse tensors open.

  Args:
    graph_def: Graph of the function; changed in place.
    concrete: The concrete function.
    arguments: Tensors or specs that it was traced with, in order.
  """
  given = [
      part for part in tf.nest.flatten(arguments, expand_composites=True)
      if hasattr(part, 'shape')
  ]
  taken = concrete.inputs[:len(concrete.inputs) - len(concrete.captured_inputs)]
  if len(given) != len(taken):
    return  # Some arguments are no inputs.
  nodes = {node.name: node for node in graph_def.node}
  for part, tensor in zip(given, taken):
    if tensor.shape.is_compatible_with(part.shape):
      shape = nodes[tensor.op.name].attr['shape'].shape
      for dim, size in zip(shape.dim, tf.TensorShape(part.shape)):
        dim.size = -1 if size is None else size


def tell_assumed(source: source_graph.SourceGraph, path: str, batch_size: int,
                 tell: Callable[[str], None]) -> None:
  """Says which size unknown dimensions of a graph's inputs get, if any."""
  if source.leaves_sizes_open():
    tell(f'{path}: unknown dimensions of inputs taken as {batch_size}; '
         f'{spelling.argument("batch_size")} sets the size')


def _known(node: node_def_pb2.NodeDef, key: str, signature: str, path: str,
           batch_size: int, said: Mapping[str, Sequence[int]]) -> list[int]:
  """Returns the shape of an input, without unknown dimensions."""
  is_open = _is_open(node)
  shape = node.attr['shape'].shape
  dims = [None if d.size < 0 else d.size for d in shape.dim]
  where = f'{path}: input "{key}" of signature "{signature}"'
  if key in said:
    wanted = list(said[key])
    if not is_open and (len(wanted) != len(dims) or
                        any(d not in (None, w) for d, w in zip(dims, wanted))):
      raise errors.InvalidGraphError(
          f'{where} has the shape {_text(dims)}, which {_text(wanted)} does '
          f'not fit. Give another {spelling.argument("shape")}.')
    return wanted
  if is_open:
    raise errors.InvalidGraphError(
        f'{where} has a shape without a known number of dimensions. Give one, '
        f'such as {spelling.argument("shape", {key: (batch_size, 8)})}.')
  return training_step.known_shape(shape, batch_size)


def _is_open(node: node_def_pb2.NodeDef) -> bool:
  """Whether even the number of dimensions is unknown.

  Exports leave out attributes with default values, and the default of `shape`
  is an unknown number of dimensions.
  """
  return 'shape' not in node.attr or node.attr['shape'].shape.unknown_rank


def _listed(shapes: Mapping[str, Sequence[int]]) -> str:
  inputs = ', '.join(f'{key} {_text(shapes[key])}' for key in sorted(shapes))
  return f', with {inputs}' if inputs else ''


def _text(dims: Sequence[int | None]) -> str:
  return f'[{", ".join("?" if d is None else str(d) for d in dims)}]'


def _write(node: node_def_pb2.NodeDef, sizes: Sequence[int]) -> None:
  shape = node.attr['shape'].shape
  shape.Clear()
  for size in sizes:
    shape.dim.add(size=size)
  node.attr.pop('_output_shapes', None)
