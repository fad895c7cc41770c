"""Small graphs to measure, and settings for quick measurements."""

from __future__ import annotations

import tensorflow as tf

from gdp_grappler.graph import graph_def_io
from gdp_grappler.graph import source_graph

tf1 = tf.compat.v1
QUICK = dict(steps=3, warmup=1, budget_s=.2)


def build(function):
  """Returns the source and the OpGraph of a graph that a function builds.

  The function returns the fetch.
  """
  graph = tf.Graph()
  with graph.as_default():
    fetch = function()
  source = source_graph.SourceGraph('test', graph.as_graph_def(), (),
                                    (getattr(fetch, 'op', fetch).name,))
  return source, graph_def_io.read(source)


def endless():
  """Builds a loop that never ends."""
  tf1.disable_control_flow_v2()
  try:
    return tf1.while_loop(lambda i: i >= 0, lambda i: i * 0, [tf.constant(0)],
                          name='loop')
  finally:
    tf1.enable_control_flow_v2()
