"""Reads the function of a SavedModel's signature, without running anything.

A SavedModel is a program, and may come from an unknown source. It is read as a
protocol buffer. Its graph has the calls of all signatures, placeholders for the
feeds, and the variables and tables that they use. Nothing is loaded, so neither
initializers nor any op of a signature runs, and files that it names are not
opened.
"""

from __future__ import annotations

from typing import Callable

from absl import logging
from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

from gdp_grappler import errors
from gdp_grappler import spelling
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import graph_files
from gdp_grappler.graph.sources import inlining
from gdp_grappler.graph.sources import input_shapes
from gdp_grappler.graph.sources import pruning

_SERVING, _TAG = 'serving_default', 'serve'
# Prefix of TensorFlow's own signatures.
_PRIVATE = '__'
_RESULT = 'gdp_result'


def read(
    model: saved_model_pb2.SavedModel, path: str, name: str, batch_size: int,
    signature: str | None, tell: Callable[[str], None] = logging.info,
    shapes: input_shapes.Shapes = ()
) -> source_graph.SourceGraph:
  """Returns a signature with its calls inlined, as if it were a function.

  Args:
    model: Content of the file.
    path: Path of the file or its folder, for messages.
    name: Name of the graph.
    batch_size: Size of unknown first dimensions.
    signature: Name of the signature; None for 'serving_default' or the only
      one.
    tell: Function that is called with a line about the signature and its
      inputs.
    shapes: Shapes of inputs whose shapes the signature leaves open.

  Raises:
    InvalidGraphError: there is no such signature or input, or the graph cannot
      be used.
  """
  meta_graph = _meta_graph(model, path)
  key, chosen = _signature(meta_graph, path, signature)
  graph_def = graph_pb2.GraphDef()
  graph_def.CopyFrom(meta_graph.graph_def)
  results = _add_results(graph_def, chosen)
  graph_files.check_nodes(graph_def, path)
  input_shapes.give(graph_def, key, chosen, path, batch_size, shapes, tell)
  source = pruning.simplify(
      source_graph.SourceGraph(name, graph_def, pruning.feeds(graph_def),
                               results), path, True, inlining.TIDY)
  return source_graph.SourceGraph(name, source.graph_def, source.feeds,
                                  _add_returns(source.graph_def, results))


def _meta_graph(model: saved_model_pb2.SavedModel,
                path: str) -> meta_graph_pb2.MetaGraphDef:
  """Returns the only MetaGraph, or the one tagged for serving."""
  found = list(model.meta_graphs)
  if len(found) > 1:
    found = [m for m in found if set(m.meta_info_def.tags) == {_TAG}]
  if len(found) != 1:
    raise errors.InvalidGraphError(
        f'{path} has {len(model.meta_graphs)} graphs, and not exactly one of '
        f'them has "{_TAG}" as its only tag. Export it with one such graph.')
  return found[0]


def _signature(meta_graph: meta_graph_pb2.MetaGraphDef, path: str,
               key: str | None) -> tuple[str, meta_graph_pb2.SignatureDef]:
  signatures = {
      name: found for name, found in meta_graph.signature_def.items()
      if not name.startswith(_PRIVATE) and found.outputs
  }
  available = sorted(signatures)
  wanted = key or (_SERVING if _SERVING in available else
                   available[0] if len(available) == 1 else None)
  if wanted is not None and wanted in signatures:
    return wanted, signatures[wanted]
  have = ', '.join(available) or 'none'
  missing = f'signature "{key}"' if key else f'{_SERVING} signature'
  remedy = 'Export it with a signature.'
  if available:
    remedy = (f'Name one: {spelling.argument("signature", available[0])}; or '
              'export it with one alone.')
  raise errors.InvalidGraphError(
      f'{path} has no {missing}; it has: {have}. {remedy}')


def _add_results(graph_def: graph_pb2.GraphDef,
                 signature: meta_graph_pb2.SignatureDef) -> tuple[str, ...]:
  """Adds a node for each output, which also waits for the call's end."""
  names = []
  outputs = [
      tensor for key in sorted(signature.outputs)
      for tensor in pruning.tensors(signature.outputs[key])
  ]
  for i, (tensor, dtype) in enumerate(outputs):
    node = graph_def.node.add(name=f'{_RESULT}_{i}', op='Identity')
    node.input.extend([tensor, f'^{name_parts.node_of(tensor)}'])
    node.attr['T'].type = dtype
    names.append(node.name)
  return tuple(names)


def _add_returns(graph_def: graph_pb2.GraphDef,
                 results: tuple[str, ...]) -> tuple[str, ...]:
  """Adds the nodes that return the results, as in the graph of a function."""
  nodes = {node.name: node for node in graph_def.node}
  names = []
  for i, result in enumerate(results):
    node = graph_def.node.add(name=f'{result}_RetVal', op='_Retval',
                              input=[result])
    node.attr['T'].CopyFrom(nodes[result].attr['T'])
    node.attr['index'].i = i
    names.append(node.name)
  return tuple(names)
