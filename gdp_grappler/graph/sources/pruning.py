"""The fetches of a graph, and the part of the graph that they need."""

from __future__ import annotations

import dataclasses
from typing import Callable, Iterable, Mapping, Sequence

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from gdp_grappler import errors
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph import start_order
from gdp_grappler.graph.sources import inlining

# Mark of nodes that the step does not need, in a GraphDef that we wrote. A
# GraphDef has no place for its fetches.
UNNEEDED_ATTRIBUTE = '_gdp_unneeded'

_NO_READ = op_kinds.SETTING | op_kinds.VARIABLES
# Ops that only read a variable. Exports keep such ops for possible readers.
_READS = op_kinds.VARIABLES | {'ReadVariableOp', 'Identity'}
# Ops that are no step by themselves.
_NO_STEP = op_kinds.VARIABLES | {'Const'}


def feeds(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """Returns the names of the placeholders."""
  return tuple(n.name for n in graph_def.node if n.op in op_kinds.PLACEHOLDERS)


def declared_fetches(
    meta_graph: meta_graph_pb2.MetaGraphDef) -> tuple[str, ...]:
  """Returns the fetches that a MetaGraph declares; empty if it declares none.

  They are the collection 'train_op', or else the outputs of its signatures.
  """
  train_op = meta_graph.collection_def['train_op'].node_list.value if (
      'train_op' in meta_graph.collection_def) else ()
  outputs = [
      name for key in sorted(meta_graph.signature_def)
      for info in meta_graph.signature_def[key].outputs.values()
      for name, _ in tensors(info) if name
  ]
  return tuple(dict.fromkeys(map(name_parts.node_of, train_op or outputs)))


def tensors(info: meta_graph_pb2.TensorInfo) -> list[tuple[str, int]]:
  """Returns names and types of the tensors of a signature's output.

  Sparse and ragged outputs have several tensors.
  """
  if info.HasField('coo_sparse'):
    sparse = info.coo_sparse
    return [(sparse.values_tensor_name, info.dtype),
            (sparse.indices_tensor_name, types_pb2.DT_INT64),
            (sparse.dense_shape_tensor_name, types_pb2.DT_INT64)]
  if info.HasField('composite_tensor'):
    return [
        tensor for part in info.composite_tensor.components
        for tensor in tensors(part)
    ]
  return [(info.name, info.dtype)]


def fetches(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """Returns the results of a function graph, or else the ops without readers.

  Readers with the mark `UNNEEDED_ATTRIBUTE` do not count. Ops that save,
  restore or initialize are left out, unless there are no others.
  """
  returned = tuple(n.name for n in graph_def.node if n.op == '_Retval')
  if returned:
    return returned
  candidates = _unread([
      n for n in graph_def.node if UNNEEDED_ATTRIBUTE not in n.attr
  ]) or sinks(graph_def)
  return _steps(graph_def, candidates) or candidates


def sinks(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """Returns the names of nodes that no other node reads or waits for."""
  return _unread(graph_def.node)


def _unread(nodes: Sequence[node_def_pb2.NodeDef]) -> tuple[str, ...]:
  read = {name_parts.node_of(i) for n in nodes for i in n.input}
  return tuple(n.name for n in nodes if n.name not in read)


def simplify(
    source: source_graph.SourceGraph, path: str, prune: bool,
    passes: Sequence[str] = inlining.INLINE) -> source_graph.SourceGraph:
  """Inlines function calls and, if `prune`, drops nodes that no fetch needs.

  Args:
    source: A graph with all its functions.
    path: Path of the file, for messages.
    prune: Whether to drop nodes that no fetch needs.
    passes: Passes of Grappler; see `inlining.inline`.

  Raises:
    InvalidGraphError: the graph has no result, or Grappler cannot inline the
      calls.
  """
  graph_def = source.graph_def
  if graph_def.node and not (source.fetches or sinks(graph_def)):
    raise errors.InvalidGraphError(
        f'Graph {path} is not usable: each of its ops has a reader, so the '
        'graph has a cycle and no result. Cut the cycle, or give a graph with '
        'a result.')
  if prune:
    graph_def = needed(graph_def, source.fetches)
  if inlining.has_calls(graph_def):
    graph_def = inlining.inline(graph_def, source.fetches, path, passes)
    if prune:
      graph_def = needed(graph_def, source.fetches)
  # A function may have imported a placed graph.
  graph_def = start_order.dropped(graph_def)
  present = {node.name for node in graph_def.node}
  return dataclasses.replace(
      source, graph_def=graph_def,
      feeds=tuple(f for f in source.feeds if f in present))


def needed(graph_def: graph_pb2.GraphDef,
           targets: tuple[str, ...]) -> graph_pb2.GraphDef:
  """Returns a copy with the nodes that `targets` depend on, in order."""
  sources = {
      node.name: list(map(name_parts.node_of, node.input))
      for node in graph_def.node
  }
  cone = _reached(targets, sources)
  result = graph_pb2.GraphDef(versions=graph_def.versions,
                              library=graph_def.library)
  result.node.extend(n for n in graph_def.node if n.name in cone)
  return result


def _steps(graph_def: graph_pb2.GraphDef,
           candidates: Sequence[str]) -> tuple[str, ...]:
  """Returns those of some ops without readers that do the graph's work."""
  nodes = {node.name: node for node in graph_def.node}
  consumers: dict[str, list[str]] = {name: [] for name in nodes}
  for node in graph_def.node:
    for tensor in node.input:
      consumers[name_parts.node_of(tensor)].append(node.name)

  def behind(wanted: Callable[[node_def_pb2.NodeDef], bool]) -> set[str]:
    return _reached((n.name for n in graph_def.node if wanted(n)), consumers)

  checkpoints = behind(lambda node: node.op in op_kinds.CHECKPOINTING)
  works = behind(lambda node: node.op not in _READS)
  of_inputs = behind(lambda node: _is_input(node, nodes))
  return tuple(
      name for name in candidates
      if nodes[name].op not in _NO_STEP and name not in checkpoints and name in
      (of_inputs if nodes[name].op in op_kinds.SETTING else works))


def _reached(names: Iterable[str],
             neighbours: Mapping[str, Sequence[str]]) -> set[str]:
  """Returns the given nodes and all nodes to which their neighbours lead."""
  seen = set(names)
  waiting = list(seen)
  while waiting:
    for name in neighbours[waiting.pop()]:
      if name not in seen:
        seen.add(name)
        waiting.append(name)
  return seen


def _is_input(node: node_def_pb2.NodeDef,
              nodes: Mapping[str, node_def_pb2.NodeDef]) -> bool:
  """Whether a node reads a variable or is a placeholder."""
  return (node.op == 'ReadVariableOp' or node.op in op_kinds.PLACEHOLDERS or
          node.op not in _NO_READ and
          any(nodes[name_parts.node_of(i)].op in op_kinds.VARIABLES
              for i in node.input if not i.startswith('^')))
