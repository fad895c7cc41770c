"""What a trace leaves in its process; `sources_test` reads its graphs."""

import pytest
import tensorflow as tf
from tensorflow.python.eager import context

from gdp_grappler.graph.sources import tracing_worker


def test_an_interrupted_trace_ends_the_collection_of_graphs():
  """After Ctrl-C, the next trace in a process got graphs of the first."""

  def interrupted():
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    tracing_worker.collect(interrupted, 'model', 'x')
  tf.function(lambda: tf.random.normal([2]))()
  assert not context.export_run_metadata().function_graphs
