"""Grappler's rewrites of a graph for a GPU, on any machine.

Grappler rewrites a graph for the devices of its nodes. On a machine without a
GPU, the result has kernels that only CPUs have (`_MklSwish`,
`_UnaryOpsComposition`, fused convolutions) and convolutions in the layout of
CPUs. A GPU would run another graph. So this module gives nodes the devices that
TensorFlow's placer would choose on a machine with a GPU, and gives Grappler a
virtual cluster with a card. Nothing runs on this card. Grappler computes
constants on the CPU, as always.

The result was compared with the graph that the pass gets on an H100, for five
programs: it has the same ops, except for one constant in 2,828.
"""

from __future__ import annotations

import re
from typing import Sequence

from tensorflow.core.framework import function_pb2
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import device_properties_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.core.protobuf import rewriter_config_pb2
from tensorflow.python.framework import errors as tf_errors
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import tf_optimizer

from gdp_grappler import errors
from gdp_grappler.graph import name_parts
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import op_kinds
from gdp_grappler.graph import union_find
from gdp_grappler.graph.legality import kernels
from gdp_grappler.graph.legality import node_types
from gdp_grappler.graph.sources import graph_files

_CAPABILITY = re.compile(r'(\d+)\.\d+')
_SHAPES = '_output_shapes'
_TASK = '/job:localhost/replica:0/task:0'
_CPU, _GPU = f'{_TASK}/device:CPU:0', f'{_TASK}/device:GPU:0'
# What Grappler raises.
_FAILURES = tf_errors.OpError, ValueError, RuntimeError
_GPU_TYPE = op_graph.DEVICE_TYPES.index('GPU')


def rewritten(
    graph_def: graph_pb2.GraphDef, targets: Sequence[str], architecture: str,
    path: str, rewriting: rewriter_config_pb2.RewriterConfig | None = None
) -> graph_pb2.GraphDef:
  """Returns a graph as Grappler leaves it in a program with a GPU.

  Args:
    graph_def: Graph before Grappler, with inlined functions. It has to be
      trusted, because Grappler computes its constants.
    targets: Names of nodes to keep.
    architecture: Architecture of the card; see `architectures.of`.
    path: Path or name of the graph, for messages.
    rewriting: Grappler's configuration in the program; None for the default.

  Raises:
    InvalidGraphError: Grappler cannot rewrite the graph.
  """
  meta_graph = meta_graph_pb2.MetaGraphDef()
  meta_graph.graph_def.CopyFrom(graph_def)
  graph_files.check_nodes(graph_def, path)
  _place(meta_graph.graph_def)
  arguments = _without_arguments(meta_graph.graph_def)
  meta_graph.collection_def['train_op'].node_list.value.extend(targets)
  try:
    result = _optimized(meta_graph, architecture, rewriting)
  except _FAILURES:
    # A function of this name may have been traced for other shapes before: a
    # process keeps only the first of functions with one name.
    for function in meta_graph.graph_def.library.function:
      _forget_shapes(function)
    try:
      result = _optimized(meta_graph, architecture, rewriting)
    except _FAILURES as error:
      raise errors.InvalidGraphError(
          f'{path} cannot be rewritten for GPUs: {errors.first_line(error)}. '
          'Capture its graph on a machine with a GPU and give that.') from error
  for node in result.node:
    if node.name in arguments:
      node.CopyFrom(arguments[node.name])
  return result


def _optimized(
    meta_graph: meta_graph_pb2.MetaGraphDef, architecture: str,
    rewriting: rewriter_config_pb2.RewriterConfig | None) -> graph_pb2.GraphDef:
  return tf_optimizer.OptimizeGraph(_config(rewriting), meta_graph,
                                    graph_id=b'gdp',
                                    cluster=_cluster(architecture))


def _forget_shapes(function: function_pb2.FunctionDef) -> None:
  """Removes the shapes that a trace has found; Grappler infers them again."""
  for argument in function.arg_attr.values():
    argument.attr.pop(_SHAPES, None)
  for node in function.node_def:
    node.attr.pop(_SHAPES, None)


def generation(architecture: str) -> str:
  """Returns one of the architectures that Grappler treats alike; '' for ''.

  Grappler distinguishes cards by whether they have tensor cores for float16,
  and whether they have tensor cores for float32 (TF32).

  Args:
    architecture: Architecture of a card; see `architectures.of`. AMD's are not
      numbers. They count as cards without tensor cores, as in Grappler.
  """
  if not architecture:
    return ''
  number = _CAPABILITY.fullmatch(architecture)
  major = int(number[1]) if number else 0
  return '8.0' if major >= 8 else '7.0' if major == 7 else '6.0'


def kept(graph_def: graph_pb2.GraphDef) -> tuple[str, ...]:
  """Returns the nodes of a function's graph that its caller waits for.

  These are the results, and nodes without readers that have an effect or are
  NoOps that wait for effects.
  """
  read = {
      name_parts.node_of(tensor) for node in graph_def.node
      for tensor in node.input
  }
  return tuple(node.name for node in graph_def.node
               if node.op in op_kinds.RETURNS or node.name not in read and
               (node.op == 'NoOp' or kernels.is_stateful(node.op)))


def _without_arguments(
    graph_def: graph_pb2.GraphDef) -> dict[str, node_def_pb2.NodeDef]:
  """Replaces arguments of known shape by placeholders.

  `OptimizeGraph` ignores the shapes of arguments, but not those of
  placeholders. Without these shapes Grappler would not know most shapes of a
  network, and would not rewrite it.

  Returns:
    The arguments by their names.
  """
  result = {}
  for node in graph_def.node:
    shapes = list(node.attr[_SHAPES].list.shape) if _SHAPES in node.attr else []
    if node.op in op_kinds.ARGUMENTS and len(shapes) == 1:
      result[node.name] = node_def_pb2.NodeDef()
      result[node.name].CopyFrom(node)
      node.op = 'Placeholder'
      node.attr.clear()
      node.attr['shape'].shape.CopyFrom(shapes[0])
      node.attr['dtype'].CopyFrom(result[node.name].attr['T'])
  return result


def _place(graph_def: graph_pb2.GraphDef) -> None:
  """Sets devices as TensorFlow's placer does: on GPUs if there is a kernel.

  Batches stay on the host, with the iterator that produces them and with ops
  that pass them on. So do strings that a function receives.
  """
  nodes = {node.name: node for node in graph_def.node}
  for node in graph_def.node:
    on_gpu = kernels.allowed_types(node)[_GPU_TYPE]
    is_text = (node.op in op_kinds.ARGUMENTS and
               node.attr['T'].type == types_pb2.DT_STRING)
    node.device = _GPU if on_gpu and not is_text else _CPU
  for node in graph_def.node:
    sources = [nodes[name_parts.node_of(tensor)] for tensor in node.input]
    if node.op in op_kinds.BATCHES:
      for each in (node, *sources):
        each.device = _CPU
    elif node.op == 'Identity' and sources[0].op in op_kinds.BATCHES:
      node.device = _CPU
  _keep_handles_together(graph_def)


def _keep_handles_together(graph_def: graph_pb2.GraphDef) -> None:
  """Puts all ops of a resource on the host if one of them has no GPU kernel.

  An argument has a kernel on both types of device, whatever its resource is. A
  lookup table, for example, has kernels on the host only. Calls of functions do
  not count: they may have several resources on several devices.
  """
  index_of = {node.name: i for i, node in enumerate(graph_def.node)}
  sets = union_find.UnionFind(len(index_of))
  for i, node in enumerate(graph_def.node):
    inputs = node_types.signature(node).inputs
    if node.op in op_kinds.CALLS:
      continue
    for tensor, type_of in zip(node.input, inputs):
      if type_of.dtype == types_pb2.DT_RESOURCE:
        sets.join(i, index_of[name_parts.node_of(tensor)])
  on_host = {
      sets.find(i) for i, node in enumerate(graph_def.node)
      if node.device == _CPU
  }
  for i, node in enumerate(graph_def.node):
    if sets.find(i) in on_host:
      node.device = _CPU


def _config(
    asked: rewriter_config_pb2.RewriterConfig | None) -> config_pb2.ConfigProto:
  """Returns the program's configuration with the same effect on every machine.

  Grappler's rewrites that save memory depend on the machine's memory, so they
  are off.
  """
  config = config_pb2.ConfigProto()
  rewriting = config.graph_options.rewrite_options
  if asked is not None:
    rewriting.CopyFrom(asked)
  del rewriting.custom_optimizers[:]
  rewriting.disable_meta_optimizer = False
  rewriting.memory_optimization = rewriting.NO_MEM_OPT
  rewriting.meta_optimizer_timeout_ms = -1  # Large graphs take minutes.
  return config


def _cluster(architecture: str) -> grappler_cluster.Cluster:
  """Returns a cluster of a host with one card."""
  card = device_properties_pb2.DeviceProperties(type='GPU')
  card.environment['architecture'] = architecture
  host = device_properties_pb2.DeviceProperties(type='CPU')
  return grappler_cluster.Cluster(devices=[
      device_properties_pb2.NamedDevice(name=name, properties=properties)
      for name, properties in ((_CPU, host), (_GPU, card))
  ])
