"""What a graph is run for, and the part of it that this needs."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import device_properties_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.framework import errors as tf_errors
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import tf_optimizer

from gdp_grappler import errors
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import source_graph
from gdp_grappler.graph.sources import graph_files

_NO_READ = op_kinds.SETTING | op_kinds.VARIABLES


def feeds(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """Names of the placeholders."""
  return tuple(n.name for n in graph_def.node if n.op in op_kinds.PLACEHOLDERS)


def declared_fetches(
    meta_graph: meta_graph_pb2.MetaGraphDef) -> tuple[str, ...]:
  """What a MetaGraph says it is for; empty if it does not.

  The collection 'train_op', else the outputs of its signatures.
  """
  train_op = meta_graph.collection_def['train_op'].node_list.value if (
      'train_op' in meta_graph.collection_def) else ()
  outputs = [
      info.name for key in sorted(meta_graph.signature_def)
      for info in meta_graph.signature_def[key].outputs.values() if info.name
  ]
  return tuple(dict.fromkeys(map(graph_files.producer, train_op or outputs)))


def fetches(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """The returned values of a function graph, else the ops nobody reads.

  Ops that save, restore or initialize do not count unless there is nothing
  else.
  """
  returned = tuple(n.name for n in graph_def.node if n.op == '_Retval')
  if returned:
    return returned
  nodes = {n.name: n for n in graph_def.node}
  candidates = sinks(graph_def)
  steps = [name for name in candidates if _is_step(name, nodes)]
  return tuple(steps or candidates)


def sinks(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """Names of the nodes that no other reads or waits for."""
  read = {graph_files.producer(i) for n in graph_def.node for i in n.input}
  return tuple(n.name for n in graph_def.node if n.name not in read)


def simplify(source: source_graph.SourceGraph, path: str,
             prune: bool) -> source_graph.SourceGraph:
  """Inlines function calls and, if asked to, drops what no fetch needs.

  Raises:
    InvalidGraphError: Grappler cannot inline the calls.
  """
  graph_def = source.graph_def
  if prune:
    graph_def = needed(graph_def, source.fetches)
  functions = {f.signature.name for f in graph_def.library.function}
  if any(n.op in op_kinds.CALLS or n.op in functions for n in graph_def.node):
    graph_def = _inline(graph_def, source.fetches, path)
    if prune:
      graph_def = needed(graph_def, source.fetches)
  present = {node.name for node in graph_def.node}
  return source_graph.SourceGraph(
      source.name, graph_def, tuple(f for f in source.feeds if f in present),
      source.fetches, source.devices)


def needed(graph_def: graph_pb2.GraphDef,
           targets: tuple[str, ...]) -> graph_pb2.GraphDef:
  """A copy with the nodes that `targets` depend on, in the same order."""
  nodes = {node.name: node for node in graph_def.node}
  cone = _cone(targets, nodes)
  result = graph_pb2.GraphDef(versions=graph_def.versions,
                              library=graph_def.library)
  result.node.extend(n for n in graph_def.node if n.name in cone)
  return result


def _inline(graph_def: graph_pb2.GraphDef, targets: tuple[str, ...],
            path: str) -> graph_pb2.GraphDef:
  """Lets Grappler's function optimizer replace calls by their bodies."""
  meta_graph = meta_graph_pb2.MetaGraphDef(graph_def=graph_def)
  meta_graph.collection_def['train_op'].node_list.value.extend(targets)
  config = config_pb2.ConfigProto()
  rewriting = config.graph_options.rewrite_options
  rewriting.optimizers.append('function')
  rewriting.min_graph_nodes = -1
  rewriting.fail_on_optimizer_errors = True
  device = device_properties_pb2.NamedDevice(
      name='/job:localhost/replica:0/task:0/device:CPU:0',
      properties=device_properties_pb2.DeviceProperties(type='CPU'))
  try:
    return tf_optimizer.OptimizeGraph(
        config, meta_graph, graph_id=b'gdp',
        cluster=grappler_cluster.Cluster(devices=[device]))
  except (tf_errors.OpError, ValueError, RuntimeError) as error:
    reason = str(error).strip().splitlines()[0]
    raise errors.InvalidGraphError(
        f'Graph {path} is not usable: its functions cannot be inlined '
        f'({reason}); export it again without functions.') from error


def _cone(targets: tuple[str, ...], nodes: Mapping[str, Any]) -> set[str]:
  """Names of everything `targets` depend on, themselves included."""
  seen, waiting = set(targets), list(targets)
  while waiting:
    for tensor in nodes[waiting.pop()].input:
      name = graph_files.producer(tensor)
      if name not in seen:
        seen.add(name)
        waiting.append(name)
  return seen


def _is_step(sink: str, nodes: Mapping[str, Any]) -> bool:
  """Whether an op that nobody reads does the graph's work."""
  if nodes[sink].op in op_kinds.VARIABLES | {'Const'}:
    return False
  cone = [nodes[name] for name in _cone((sink,), nodes)]
  if any(node.op in op_kinds.CHECKPOINTING for node in cone):
    return False
  if nodes[sink].op not in op_kinds.SETTING:
    return not _only_reads(cone)
  return any(node.op == 'ReadVariableOp' or node.op in op_kinds.PLACEHOLDERS or
             node.op not in _NO_READ and _reads_variable(node, nodes)
             for node in cone)


def _only_reads(cone: Sequence[Any]) -> bool:
  """A variable's own read op, there for whoever may want the value."""
  return {n.op for n in cone
         } <= {'ReadVariableOp', 'Identity'} | op_kinds.VARIABLES


def _reads_variable(node: Any, nodes: Mapping[str, Any]) -> bool:
  return any(nodes[graph_files.producer(i)].op in op_kinds.VARIABLES
             for i in node.input if not i.startswith('^'))
