"""Replaces calls of functions by their bodies, with Grappler.

Only Grappler's passes that rewrite nodes without computing values are used, so
no kernel runs.
"""

from __future__ import annotations

import itertools
from typing import Iterator, Mapping, Sequence

from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.protobuf import device_properties_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow.python.framework import errors as tf_errors
from tensorflow.python.grappler import cluster as grappler_cluster
from tensorflow.python.grappler import tf_optimizer

from gdp_grappler import errors
from gdp_grappler.graph import op_kinds

INLINE = ('function',)
# The result is as close to the graph that a custom pass gets as is possible
# without computing constants.
TIDY = (*INLINE, 'arithmetic', 'dependency')
# Limit of nodes after inlining, as Grappler needs some kilobytes for each.
_MOST_NODES = 5_000_000
# Limit of nested functions, as Grappler works on them recursively.
_DEEPEST = 100
_HOST = '/job:localhost/replica:0/task:0/device:CPU:0'


def has_calls(graph_def: graph_pb2.GraphDef) -> bool:
  """Whether a graph has calls that can be inlined."""
  functions = {f.signature.name for f in graph_def.library.function}
  return any(
      n.op in op_kinds.CALLS or n.op in functions for n in graph_def.node)


def inline(graph_def: graph_pb2.GraphDef, targets: Sequence[str], path: str,
           passes: Sequence[str] = INLINE) -> graph_pb2.GraphDef:
  """Replaces calls by their bodies.

  Args:
    graph_def: Graph whose nodes TensorFlow knows.
    targets: Names of nodes to keep.
    path: Path of the file, for messages.
    passes: Passes of Grappler: `INLINE` or `TIDY`.

  Raises:
    InvalidGraphError: Grappler cannot inline the calls, or the result would
      have too many nodes.
  """
  why = objection(graph_def)
  if why:
    raise _unusable(path, why)
  meta_graph = meta_graph_pb2.MetaGraphDef(graph_def=graph_def)
  meta_graph.collection_def['train_op'].node_list.value.extend(targets)
  config = config_pb2.ConfigProto()
  rewriting = config.graph_options.rewrite_options
  rewriting.optimizers.extend(passes)
  rewriting.min_graph_nodes = -1
  rewriting.fail_on_optimizer_errors = True
  device = device_properties_pb2.NamedDevice(
      name=_HOST, properties=device_properties_pb2.DeviceProperties(type='CPU'))
  try:
    return tf_optimizer.OptimizeGraph(
        config, meta_graph, graph_id=b'gdp',
        cluster=grappler_cluster.Cluster(devices=[device]))
  except (tf_errors.OpError, ValueError, RuntimeError) as error:
    raise _unusable(
        path, f'its functions cannot be inlined ({errors.first_line(error)})'
    ) from error


def objection(graph_def: graph_pb2.GraphDef) -> str | None:
  """Returns why a graph's functions must not be inlined or run, or None."""
  return _call_error(graph_def) or _size_error(graph_def)


def _call_error(graph_def: graph_pb2.GraphDef) -> str | None:
  """Returns an error of calls by loops and conditions, or None.

  TensorFlow does not check such calls, and crashes if they are wrong.
  """
  library = graph_def.library.function
  signatures = {f.signature.name: f.signature for f in library}
  for node in itertools.chain(graph_def.node, *(f.node_def for f in library)):
    for name, num_inputs, num_outputs in _bodies(node):
      signature = signatures.get(name)
      if signature is None:
        return f'"{node.name}" calls function "{name}", which is not there'
      if (len(signature.input_arg), len(signature.output_arg)) != (num_inputs,
                                                                   num_outputs):
        return (f'"{node.name}" calls function "{name}" with {num_inputs} '
                f'inputs and {num_outputs} outputs, but the function has '
                f'{len(signature.input_arg)} and {len(signature.output_arg)}')
  return None


def _bodies(node: node_def_pb2.NodeDef) -> Iterator[tuple[str, int, int]]:
  """Yields functions of a loop or condition, and numbers of their tensors."""
  attr = node.attr
  if node.op in op_kinds.WHILES:
    count = len(attr['T'].list.type)
    yield attr['cond'].func.name, count, 1
    yield attr['body'].func.name, count, count
  elif node.op in op_kinds.CONDITIONS:
    functions = (attr['branches'].list.func if node.op in op_kinds.CASES else
                 (attr['then_branch'].func, attr['else_branch'].func))
    for function in functions:
      yield (function.name, len(attr['Tin'].list.type),
             len(attr['Tout'].list.type))


def _size_error(graph_def: graph_pb2.GraphDef) -> str | None:
  """Returns why inlining would not end or would take too much memory, or None.

  For example, thirty functions that each call the next one twice have a billion
  nodes.
  """
  bodies = {
      f.signature.name: list(f.node_def) for f in graph_def.library.function
  }
  bodies[''] = list(graph_def.node)
  sizes: dict[str, int] = {}
  depths: dict[str, int] = {}
  # A function is handled after those that it calls. The stack is a list,
  # because functions may be nested more deeply than Python's recursion limit.
  waiting, begun = [''], set[str]()
  while waiting:
    name = waiting[-1]
    called = list(_called(bodies[name], bodies))
    if name not in begun:
      begun.add(name)
      waiting += set(called) - begun
      continue
    waiting.pop()
    if not sizes.keys() >= set(called):
      return f'its function "{name}" calls itself'
    sizes[name] = len(bodies[name]) + sum(sizes[f] for f in called)
    depths[name] = 1 + max((depths[f] for f in called), default=0)
    if sizes[name] > _MOST_NODES:
      return f'inlined, its functions have more than {_MOST_NODES:,} nodes'
    if depths[name] > _DEEPEST:
      return f'calls of its functions are nested more than {_DEEPEST} deep'
  return None


def _unusable(path: str, why: str) -> errors.InvalidGraphError:
  return errors.InvalidGraphError(
      f'Graph {path} is not usable: {why}; export it without functions.')


def _called(
    nodes: Sequence[node_def_pb2.NodeDef],
    bodies: Mapping[str, Sequence[node_def_pb2.NodeDef]]) -> Iterator[str]:
  """Yields each called function, once per call."""
  for node in nodes:
    if node.op in bodies:
      yield node.op
    for value in node.attr.values():
      for function in (value.func, *value.list.func):
        if function.name in bodies and function.name:
          yield function.name
