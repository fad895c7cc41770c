"""Requests by tf.device in layers, functions, sessions and saved models."""

import tempfile

import common
import numpy as np
import tensorflow as tf

common.make_devices()
import keras  # noqa: E402

X = np.ones((8, 8), np.float32)
FORCED = {'placer': 'random', 'keep_best': False, 'min_ops': 4}


def where(graphs, op_type):
  """Returns the devices of the ops of a type."""
  return sorted({
      node.device.rsplit('device:')[-1] for graph in graphs
      for node in graph.node if node.op == op_type
  })


def ran(function, op_type):
  """Returns the devices of a type's ops in the functions that a call runs."""
  from tensorflow.python.eager import context
  context.context().clear_kernel_cache()
  context.context().enable_graph_collection()
  function()
  graphs = context.context().export_run_metadata().function_graphs
  context.context().disable_graph_collection()
  return where([part for graph in graphs for part in graph.partition_graphs],
               op_type)


def fit(**option):
  """Returns the devices of the weights of layers made under CPU:1."""
  common.set_option({**FORCED, **option})
  inputs = keras.Input((8,))
  with tf.device('/CPU:1'):
    asked = [keras.layers.Dense(8) for _ in range(4)]
    x = inputs
    for layer in asked:
      x = layer(x)
  model = keras.Model(inputs, keras.layers.Dense(8)(x))
  model.compile('adam', 'mse')
  model.fit(X, X, verbose=0)
  return sorted({w.value.device[-5:] for layer in asked for w in layer.weights})


@tf.function
def function(x):
  for _ in range(9):
    x = tf.matmul(x, x)
  with tf.device('/CPU:1'):
    x = tf.linalg.matrix_transpose(tf.math.erf(x))
  with tf.device('/GPU:3'):
    x = tf.atan(x)
  with tf.device('/GPU:3'):
    return tf.matmul(x, x)


def session_graph():
  """Returns the input and the output of a new graph for sessions."""
  with tf.Graph().as_default():
    x = y = tf.compat.v1.placeholder(tf.float32, (8, 8))
    for _ in range(9):
      y = tf.matmul(y, y)
    with tf.device('/cpu:1'):
      y = tf.math.erf(y)
    return x, tf.reduce_sum(tf.matmul(y, y))


def session():
  """Returns the devices of requested ops in a session."""
  x, y = session_graph()
  options = tf.compat.v1.RunOptions(output_partition_graphs=True)
  found = tf.compat.v1.RunMetadata()
  with tf.compat.v1.Session(graph=y.graph) as running:
    running.run(y, {x: X}, options=options, run_metadata=found)
  return where(found.partition_graphs, 'Erf')


def partial_run():
  """Runs a graph of a session in parts, and returns TensorFlow's lines."""
  lines = common.Lines()
  common.logging.getLogger('tensorflow').addHandler(lines)
  x, y = session_graph()
  with tf.compat.v1.Session(graph=y.graph) as running:
    handle = running.partial_run_setup([y], [x])
    running.partial_run(handle, y, {x: X})
  return lines.take()


def saved():
  """Saves and loads the function as a SavedModel."""
  module = tf.Module()
  module.f = tf.function(function.python_function,
                         input_signature=[tf.TensorSpec((8, 8))])
  with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder)


def main():
  import gdp_grappler
  handler = common.Lines()
  common.logging.getLogger('gdp_grappler').addHandler(handler)
  common.logging.getLogger('gdp_grappler').setLevel('INFO')
  weights = fit()
  fit_lines = handler.take()
  freed = fit(pins='ignore')
  handler.take()
  common.set_option(FORCED)
  op = ran(lambda: function(tf.constant(X)), 'Erf')
  function_lines = handler.take()
  loaded = saved()
  of_saved = ran(lambda: loaded.f(tf.constant(X)), 'Erf')
  of_session = session()
  handler.take()
  deprecated = partial_run()
  partial_lines = handler.take()
  with gdp_grappler.made_on_host():
    unasked = tf.Variable(1.)
  slot = tf.distribute.get_strategy().extended.colocate_vars_with
  with slot(unasked):
    unasked_slot = tf.Variable(1.)
  from gdp_grappler import variable_scopes
  common.set_option({**FORCED, 'pins': 'ignore'})
  lifted = ran(lambda: function(tf.constant(X)), 'Erf')
  common.finish(weights=weights, freed=freed, fit_lines=fit_lines, op=op,
                lifted=lifted, function_lines=function_lines, of_saved=of_saved,
                of_session=of_session, partial_lines=partial_lines,
                deprecated=deprecated,
                unasked=[*map(variable_scopes.device, (unasked, unasked_slot))])


if __name__ == '__main__':
  main()
