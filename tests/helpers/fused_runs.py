"""Runs nodes on the CPU, in a process with oneDNN."""

from __future__ import annotations

from typing import Mapping, Sequence

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import graph_pb2
from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import config_pb2

tf1 = tf.compat.v1


def run_all(
    cases: Sequence[tuple[Sequence[bytes], Mapping[str, np.ndarray]]]
) -> list[np.ndarray]:
  """Returns the result of node 'x/fused' of each case, without rewrites.

  Args:
    cases: Serialized nodes, and the values to feed.
  """
  return [_run(nodes, inputs) for nodes, inputs in cases]


def _run(nodes: Sequence[bytes], inputs: Mapping[str,
                                                 np.ndarray]) -> np.ndarray:
  graph_def = graph_pb2.GraphDef()
  for name, value in inputs.items():
    given = graph_def.node.add(name=name, op='Placeholder')
    given.attr['dtype'].type = tf.float32.as_datatype_enum
    for size in value.shape:
      given.attr['shape'].shape.dim.add(size=size)
  graph_def.node.extend(map(node_def_pb2.NodeDef.FromString, nodes))
  config = config_pb2.ConfigProto()
  config.graph_options.rewrite_options.disable_meta_optimizer = True
  with tf.Graph().as_default() as graph:
    tf.import_graph_def(graph_def, name='')
    with tf1.Session(graph=graph, config=config) as session:
      return session.run('x/fused:0',
                         {f'{name}:0': v for name, v in inputs.items()})
