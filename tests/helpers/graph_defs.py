"""GraphDefs for tests, written by hand or by a function that adds ops."""

from __future__ import annotations

from typing import Callable, Sequence

import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import op_graph
from gdp_grappler.graph import source_graph

FLOAT = {'type': 1}
CPU = '/job:localhost/replica:0/task:0/device:CPU:{}'.format
GPU = '/job:localhost/replica:0/task:0/device:GPU:{}'.format


def node(name: str, op: str, inputs: Sequence[str] = (), device: str = '',
         **attributes) -> tf.compat.v1.NodeDef:
  """Returns a node.

  Args:
    name: Name of the node.
    op: Type of the op.
    inputs: 'producer', 'producer:1' or '^control'.
    device: Device in TensorFlow's format.
    **attributes: `T=FLOAT`, `s=b'text'`; a dict has the fields of AttrValue.
  """
  result = tf.compat.v1.NodeDef(name=name, op=op, input=inputs, device=device)
  for key, value in attributes.items():
    attr = result.attr[key]
    if isinstance(value, dict):
      attr.MergeFrom(type(attr)(**value))
    elif isinstance(value, bytes):
      attr.s = value
    else:
      attr.list.s.extend(value)
  return result


def branches(device: str, **attributes) -> tuple[tf.compat.v1.NodeDef, ...]:
  """Returns a graph with two heavy, independent products."""
  big = {'type': 1}
  flags = {'transpose_a': {'b': False}, 'transpose_b': {'b': False}}
  nodes = []
  for i in range(2):
    start = node(f'a{i}', 'RandomUniform', ['shape'], device, T={'type': 3},
                 dtype=big)
    nodes += [
        start,
        node(f'b{i}', 'MatMul', [f'a{i}', f'a{i}'], device, T=big, **flags,
             **attributes)
    ]
  shape = node('shape', 'Const', device=device, dtype={'type': 3})
  value = shape.attr['value'].tensor
  value.dtype = 3
  value.tensor_shape.dim.add().size = 2
  value.int_val.extend([4096, 4096])
  return shape, *nodes


def graph_def(*nodes: tf.compat.v1.NodeDef) -> tf.compat.v1.GraphDef:
  """Returns a graph of these nodes."""
  return tf.compat.v1.GraphDef(node=nodes)


def built(make: Callable[[], object]) -> tf.compat.v1.GraphDef:
  """Returns the v1 graph that a function builds."""
  with tf.Graph().as_default() as graph:
    make()
  return graph.as_graph_def()


def source(definition: tf.compat.v1.GraphDef,
           **fields) -> source_graph.SourceGraph:
  """Returns the source of a graph named 'test'."""
  return source_graph.SourceGraph('test', definition, **fields)


def read(make: Callable[[], object], *, live: bool = False,
         relocatable: bool = False, **fields) -> op_graph.OpGraph:
  """Returns `graph_def_io.read` of the graph that a function builds."""
  return graph_def_io.read(source(built(make), **fields), live=live,
                           relocatable=relocatable)


def groups(graph: op_graph.OpGraph) -> dict[str, int]:
  """Returns the group of each op by name."""
  return dict(zip(graph.names, graph.groups.tolist()))


def pins(graph: op_graph.OpGraph) -> dict[str, str]:
  """Returns the pin of each op by name."""
  return dict(zip(graph.names, graph.pins))


def optimized(step: Callable[[], object]) -> tf.compat.v1.GraphDef:
  """Returns the optimized graph of a function that TensorFlow runs."""
  context.enable_graph_collection()
  try:
    step()
    graphs = [
        f.post_optimization_graph
        for f in context.context().export_run_metadata().function_graphs
    ]
  finally:
    context.disable_graph_collection()
  return max(graphs, key=lambda g: len(g.node))
