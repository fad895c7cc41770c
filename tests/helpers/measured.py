"""Small graphs to measure, and settings that do it quickly."""

from __future__ import annotations

import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph

tf1 = tf.compat.v1
QUICK = dict(steps=3, warmup=1, budget_s=.2)


def build(function):
  """A source and its OpGraph from what a function builds and returns."""
  graph = tf.Graph()
  with graph.as_default():
    fetch = function()
  source = source_graph.SourceGraph('test', graph.as_graph_def(), (),
                                    (getattr(fetch, 'op', fetch).name,))
  return source, graph_def_io.read(source)


def endless():
  """A loop that never ends."""
  tf1.disable_control_flow_v2()
  try:
    return tf1.while_loop(lambda i: i >= 0, lambda i: i * 0, [tf.constant(0)],
                          name='loop')
  finally:
    tf1.enable_control_flow_v2()
